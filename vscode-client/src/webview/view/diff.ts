// Changed lines: hunks with accept and reject, and patches that are only looked at.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { Hunk, JsonValue } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine, plainText } from "../safe-text.js";
import { editorOnly, may } from "../surface.js";
import { resolve } from "../verbs.js";
import { plural, shortPath } from "../words.js";
import { moreButton } from "./folding.js";
import { TAIL_LINES } from "./output.js";
import { counts, icon, iconButton, type View } from "./parts.js";
import { type FileHunks, isOpen } from "./row-context.js";

const LINES_SHOWN = 60;

/** Shows a file with its hunks, each of which can be kept or taken back. */
export function fileDiff(panel: Panel, { file, hunks }: FileHunks, { counted = true } = {}): View {
  const waiting = hunks.filter((hunk) => hunk.state === "pending");
  const { added, gone } = countedLines(hunks);
  const path = shortPath(file.uri, panel.state.session?.roots);
  const all = (action: "accept" | "reject") =>
    resolve(
      panel,
      waiting.map((hunk) => ({ hunk: hunk.id, action })),
    );
  return html`<div class="file-diff">
    <div class="file-head">
      <button type="button" class="path" title="Open ${path}" @click=${() => panel.host.post({ type: "open", uri: file.uri })}>
        ${icon(OPS[file.op] ?? "diff-modified", `op-${file.op}`)}<span class="path-text">${oneLine(path)}</span>
      </button>
      ${counted ? counts(added, gone) : nothing} ${file.state === "unsaved" ? html`<span class="badge">unsaved</span>` : nothing}
      <span class="file-acts">
        ${editorOnly(panel, iconButton({ icon: "diff", title: `Open ${path} as a diff`, act: () => panel.host.post({ type: "diff", uri: file.uri }) }))}
        ${
          waiting.length > 1 && may(panel, "operator")
            ? html`${iconButton({ icon: "check-all", title: `Keep all changes of ${path}`, act: () => all("accept") })}
              ${iconButton({ icon: "discard", title: `Reject all changes of ${path}`, act: () => all("reject") })}`
            : nothing
        }
      </span>
    </div>
    ${file.binary ? html`<div class="dim pad">A binary file.</div>` : nothing}
    ${repeat(
      hunks,
      (hunk) => hunk.id,
      (hunk) => hunkView(panel, file.uri, hunk),
    )}
  </div>`;
}

export const OPS: Readonly<Record<string, string>> = {
  add: "diff-added",
  modify: "diff-modified",
  delete: "diff-removed",
  move: "diff-renamed",
};
const STATES: Readonly<Record<string, string>> = {
  accepted: "kept",
  rejected: "rejected",
  userEdited: "edited by you",
  orphaned: "gone",
};

function hunkView(panel: Panel, uri: string, hunk: Hunk): View {
  const line = hunk.after.start.line + 1;
  const decide = (action: "accept" | "reject") => resolve(panel, [{ hunk: hunk.id, action }]);
  const busy = panel.state.busy[`resolve:${hunk.id}`] === true;
  const waits = hunk.state === "pending";
  return html`<div class="hunk ${hunk.state}" role="group" aria-label="Change at line ${line}">
    <div class="hunk-head">
      <button
        type="button"
        class="hunk-line"
        title="Show in the editor"
        @click=${() => panel.host.post({ type: "open", uri, range: hunk.after })}
      >
        Line ${line}
      </button>
      ${waits ? nothing : html`<span class="badge">${STATES[hunk.state] ?? hunk.state}</span>`}
      ${
        waits && may(panel, "operator")
          ? html`<span class="hunk-acts">
            <button type="button" class="keep" ?disabled=${busy} title="Keep this change" @click=${() => decide("accept")}>
              ${icon("check")} Keep
            </button>
            <button type="button" class="reject" ?disabled=${busy} title="Reject this change" @click=${() => decide("reject")}>
              ${icon("discard")} Reject
            </button>
          </span>`
          : nothing
      }
    </div>
    ${hunkLines(panel, hunk)}
  </div>`;
}

/** Shows the lines that a hunk takes away and adds. */
export function hunkLines(panel: Panel, { id, after, oldText, newText }: Hunk): View {
  const name = `Changed lines from line ${after.start.line + 1}`;
  return lines(panel, { key: id, name }, marked(oldText, "-").concat(marked(newText, "+")));
}

/** Counts the lines that hunks add and take away. */
export function countedLines(hunks: readonly Hunk[]): { added: number; gone: number } {
  return {
    added: sum(hunks, (hunk) => linesOf(hunk.newText).length),
    gone: sum(hunks, (hunk) => linesOf(hunk.oldText).length),
  };
}

/** Shows the newest lines of changes that the model is still writing. */
export function growingDiff(
  changes: readonly { oldText?: JsonValue | undefined; newText: JsonValue | undefined }[],
): View {
  const text = (value: JsonValue | undefined) => (typeof value === "string" ? value : "");
  const all = changes.flatMap(({ oldText, newText }) =>
    marked(text(oldText), "-").concat(marked(text(newText), "+")),
  );
  if (all.length === 0) return nothing;
  return html`<div class="diff" tabindex="0" role="region" aria-label="Changed lines so far">
    ${dedented(all.slice(-TAIL_LINES)).map(({ sign, text }) => line(sign, text))}
  </div>`;
}

interface Line {
  sign: string;
  text: string;
}

function marked(text: string, sign: string): Line[] {
  return linesOf(text).map((line) => ({ sign, text: line }));
}

function linesOf(text: string): string[] {
  return text === "" ? [] : plainText(text).replace(/\n$/, "").split("\n");
}

/** Shows a unified diff, or whatever text a server made of it. */
export function patch(panel: Panel, key: string, text: string): View {
  const all = linesOf(text).filter((line) => !/^(---|\+\+\+|diff |index )/.test(line));
  return lines(panel, { key, name: "Changed lines" }, all.map(patchLine));
}

function patchLine(line: string): Line {
  const place = /^@@ -\d+(?:,\d+)? \+(\d+)/.exec(line);
  if (place) return { sign: "@", text: `Line ${place[1]}` };
  // A remark of the diff itself, such as on the end of the file.
  if (line.startsWith("\\")) return { sign: "@", text: line.slice(1).trim() };
  return { sign: line[0] ?? " ", text: line.slice(1) };
}

const CLASSES: Readonly<Record<string, string>> = { "+": "added", "-": "removed", "@": "where" };

function lines(panel: Panel, { key, name }: { key: string; name: string }, all: readonly Line[]): View {
  const folded = `lines:${key}`;
  const long = all.length > LINES_SHOWN * 1.5;
  const open = isOpen(panel, folded, { usually: false });
  const shown = dedented(long && !open ? all.slice(0, LINES_SHOWN) : all);
  return html`<div class="diff" tabindex="0" role="region" aria-label=${name}>
      ${shown.map(({ sign, text }) => line(sign, text))}
    </div>
    ${long ? moreButton(panel, folded, { open, all: plural(all.length, "line") }) : nothing}`;
}

/** Takes off the indentation that all lines have: a narrow panel needs the room for what changed. */
function dedented(all: readonly Line[]): readonly Line[] {
  const code = all.filter(({ sign, text }) => sign !== "@" && text.trim() !== "");
  const indents = code.map(({ text }) => /^[ \t]*/.exec(text)?.[0] ?? "");
  const common = indents.reduce((one, other) => commonStart(one, other), indents[0] ?? "");
  if (common === "") return all;
  return all.map((line) =>
    line.sign === "@" || !line.text.startsWith(common)
      ? line
      : { ...line, text: line.text.slice(common.length) },
  );
}

function commonStart(one: string, other: string): string {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return one.slice(0, at);
}

const SIGNS: Readonly<Record<string, string>> = { "+": "+", "-": "−" };

function line(sign: string, text: string): View {
  const kind = CLASSES[sign] ?? "same";
  const said = kind === "added" ? "added: " : kind === "removed" ? "removed: " : "";
  return html`<div class="line ${kind}"><span class="sign" aria-hidden="true">${SIGNS[sign] ?? " "}</span
    ><span class="unseen">${said}</span><span class="text">${text.slice(0, 2000) || " "}</span></div>`;
}

function sum(hunks: readonly Hunk[], count: (hunk: Hunk) => number): number {
  return hunks.reduce((total, hunk) => total + count(hunk), 0);
}
