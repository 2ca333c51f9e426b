// Earlier states of the files: look at what going back would do, then go back.

import { html, nothing } from "lit";
import type { Checkpoint, CheckpointScope, PreviewedFile } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import { preview, restore } from "../verbs.js";
import { agoText, plural, shortPath } from "../words.js";
import { patch } from "./diff.js";
import { placeHead } from "./header.js";
import { icon, spinner, type View } from "./parts.js";

const SCOPES: readonly [CheckpointScope, string][] = [
  ["files", "Files"],
  ["both", "Files and conversation"],
  ["conversation", "Conversation"],
];

export function checkpoints(panel: Panel): View {
  const { checkpoints: listed } = panel.state.lists;
  return html`${placeHead(panel, "Checkpoints")}
    <div class="place-list" role=${listed && listed.length > 0 ? "list" : nothing} aria-label=${listed && listed.length > 0 ? "Checkpoints" : nothing}>
      ${listed ? nothing : html`<div class="pad">${spinner()}</div>`}
      ${listed?.length === 0 ? html`<div class="empty dim">No checkpoints yet. One is created before the first change of each run, and before each restore and rejection.</div>` : nothing}
      ${[...(listed ?? [])].reverse().map((one) => entry(panel, one))}
    </div>`;
}

function entry(panel: Panel, one: Checkpoint): View {
  const shown = panel.state.lists.preview;
  const open = shown?.checkpoint === one.checkpoint;
  const words = wordsOf(panel, one);
  const toggle = () => {
    if (open) panel.dispatch({ type: "listed", lists: { preview: undefined } });
    else preview(panel, one.checkpoint, "files");
  };
  return html`<div class="entry ${open ? "current" : ""}" role="listitem">
    <button type="button" class="entry-main" aria-expanded=${String(open)} @click=${toggle}>
      <span class="entry-title clip">${icon("git-commit")} ${words}</span>
      <span class="entry-detail dim">${agoText(one.at, panel.state.nowMs || Date.now())} · ${one.run ? "before this run" : "restoring undoes it"}${one.files > 0 ? ` · ${plural(one.files, "file")}` : ""}</span>
    </button>
    ${open && shown ? previewed(panel, one.checkpoint, shown.scope, shown.files) : nothing}
  </div>`;
}

/** A checkpoint is best known by the words that began its run: the last that were said before it. */
function wordsOf(panel: Panel, one: Checkpoint): string {
  if (!one.run) return "Before a restore or a rejection";
  const said = panel.state.session?.rows.findLast(
    (row) => row.kind === "said" && row.role === "user" && row.at !== undefined && row.at <= one.at,
  );
  return (said?.kind === "said" && oneLine(said.text).slice(0, 200)) || "A run";
}

const STATUSES: Readonly<Record<string, [string, string]>> = {
  same: ["check", "unchanged"],
  agentOnly: ["discard", "will be restored"],
  userEdited: ["warning", "You (or another program) changed this file since"],
  missing: ["trash", "deleted since"],
};

function previewed(
  panel: Panel,
  checkpoint: string,
  scope: CheckpointScope,
  files: readonly PreviewedFile[],
): View {
  const touched = files.filter((file) => file.status !== "same");
  const contested = touched.some((file) => file.status === "userEdited" || file.status === "missing");
  const busy = panel.state.busy["restore"] === true || panel.state.session?.run !== undefined;
  return html`<div class="previewed">
    <div class="scopes" role="radiogroup" aria-label="What to restore">
      ${SCOPES.map(
        ([one, words]) =>
          html`<button type="button" class="scope" role="radio" aria-checked=${String(scope === one)} @click=${() => preview(panel, checkpoint, one)}>${words}</button>`,
      )}
    </div>
    ${scope === "conversation" ? html`<div class="dim pad">Only the conversation is restored; files stay as they are.</div>` : nothing}
    ${scope !== "conversation" && touched.length === 0 ? html`<div class="dim pad">All files are the same as at this checkpoint.</div>` : nothing}
    ${scope === "conversation" ? nothing : touched.map((file) => fileView(panel, file))}
    ${
      panel.readOnly
        ? nothing
        : html`<div class="answers">
      <button type="button" class="primary" ?disabled=${busy} @click=${() => restore(panel, checkpoint, scope, "skip")}>
        ${contested ? "Restore unchanged files only" : "Restore"}
      </button>
      ${
        contested
          ? html`<button type="button" class="secondary" ?disabled=${busy} @click=${() => restore(panel, checkpoint, scope, "merge")}>Restore and keep my edits</button>
            <button type="button" class="secondary danger" ?disabled=${busy} @click=${() => restore(panel, checkpoint, scope, "overwrite")}>Restore and discard my edits</button>`
          : nothing
      }
    </div>
    <div class="dim pad">You can undo this restore.</div>`
    }
  </div>`;
}

function fileView(panel: Panel, file: PreviewedFile): View {
  const [name, words] = STATUSES[file.status] ?? ["file", file.status];
  const path = shortPath(file.uri, panel.state.session?.roots);
  return html`<div class="file-diff">
    <div class="file-head">
      <button type="button" class="path" @click=${() => panel.host.post({ type: "open", uri: file.uri })}>${icon(name)}<span class="path-text">${oneLine(path)}</span></button>
      <span class="dim">${file.why ? oneLine(file.why) : words}</span>
    </div>
    ${file.diff ? patch(panel, `preview:${file.uri}`, file.diff) : nothing}
  </div>`;
}
