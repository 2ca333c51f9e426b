// A tool call as a card: what it is, how it stands, its arguments while they stream, its output while it runs.

import { html, nothing } from "lit";
import type { JsonValue } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { parsed, type ToolRow, textOf } from "../rows.js";
import { oneLine, plainText } from "../safe-text.js";
import { durationText, plural } from "../words.js";
import { fileDiff, patch } from "./diff.js";
import { moreButton } from "./folding.js";
import { counts, icon, spinner, type View } from "./parts.js";
import { type FileHunks, fold, hunksOf, isOpen } from "./row-context.js";
import { picture } from "./said.js";

const ICONS: Readonly<Record<string, string>> = {
  bash: "terminal",
  read: "eye",
  write: "new-file",
  edit: "edit",
  grep: "search",
  find: "search",
  ls: "list-tree",
  fetch: "globe",
  diagnostics: "warning",
};
const TAIL_LINES = 12;
const LINES_SHOWN = 24;
const CHARACTERS_SHOWN = 100_000;

export function tool(panel: Panel, row: ToolRow): View {
  const changed = hunksOf(panel.state.session?.changeSet, row.call);
  const edits = row.name === "edit" || row.name === "write";
  const open = isOpen(panel, row.key, { usually: row.phase !== "ended" || edits || row.status === "error" });
  const bad = row.status === "error" || row.status === "blocked" ? "bad" : "";
  return html`<div class="tool ${row.phase} ${bad}">
    <button type="button" class="tool-head" aria-expanded=${String(open)} @click=${() => fold(panel, row.key, !open)}>
      ${icon(ICONS[row.name] ?? "tools", "tool-icon")}
      <span class="tool-title">${title(row)}</span>
      ${edits ? changeCounts(row) : nothing} ${state(row)} ${icon("chevron-right", `turn ${open ? "open" : ""}`)}
    </button>
    ${open ? html`<div class="tool-body">${body(panel, row, changed)}</div>` : nothing}
  </div>`;
}

function title(row: ToolRow): View {
  const text = oneLine(row.title).slice(0, 400);
  if (text.startsWith("$ ")) return html`<code>${text.slice(2)}</code>`;
  const [verb, ...rest] = text.split(" ");
  return html`<span class="verb">${verb}</span> ${rest.length > 0 ? html`<span class="about">${rest.join(" ")}</span>` : nothing}`;
}

function changeCounts(row: ToolRow): View {
  const added = field(row.details, "additions");
  const gone = field(row.details, "deletions");
  return typeof added === "number" && typeof gone === "number" ? counts(added, gone) : nothing;
}

function state(row: ToolRow): View {
  if (row.phase === "asked")
    return html`<span class="state">${spinner()}<span class="unseen">being asked</span></span>`;
  if (row.phase === "running")
    return html`<span class="state">${spinner()}<span class="unseen">running</span></span>`;
  const [name, words] = ENDS[row.status ?? "ok"] ?? ["question", row.status ?? ""];
  const took = row.durationMs !== undefined && row.durationMs >= 1000 ? durationText(row.durationMs) : "";
  const code = field(row.details, "exit_code");
  const exit = typeof code === "number" && code !== 0 ? `exit ${code}` : "";
  return html`<span class="state ${row.status}"
    ><span class="took">${[exit, took].filter(Boolean).join(" · ")}</span>${icon(name)}<span class="unseen">${words}</span></span
  >`;
}

const ENDS: Readonly<Record<string, [string, string]>> = {
  ok: ["check", "done"],
  error: ["error", "failed"],
  skipped: ["debug-step-over", "skipped"],
  blocked: ["circle-slash", "not allowed"],
  cancelled: ["stop-circle", "stopped"],
};

function body(panel: Panel, row: ToolRow, changed: FileHunks[]): View {
  if (row.phase === "asked") return asked(row);
  if (changed.length > 0)
    return html`${changed.map((one) => fileDiff(panel, one, { counted: false }))} ${failure(panel, row)}`;
  const made = field(row.details, "patch");
  if (typeof made === "string" && made)
    return html`<div class="file-diff">${patch(panel, row.key, made)}</div>`;
  return html`${input(row)} ${output(panel, row)} ${changedFiles(row)}`;
}

/** Arguments that are whole, though the call waits to run, are shown as those of a call that runs. */
function asked(row: ToolRow): View {
  const whole = parsed(row.inputText);
  return whole === undefined ? streamingInput(row) : input({ ...row, input: whole }, { always: true });
}

/** Arguments while they stream: the text that grows, without the quotes and escapes of JSON. */
function streamingInput(row: ToolRow): View {
  if (!row.inputText) return nothing;
  const readable = row.inputText
    .slice(-6000)
    .replace(/\\n/g, "\n")
    .replace(/\\t/g, "  ")
    .replace(/\\"/g, '"');
  const shown = plainText(readable).split("\n").slice(-TAIL_LINES).join("\n");
  return html`<pre class="streaming" aria-label="Arguments so far">${shown}</pre>`;
}

function input(row: ToolRow, { always = false } = {}): View {
  const given = row.input;
  if (given === null || given === undefined || typeof given !== "object" || Array.isArray(given))
    return nothing;
  const command = given["command"];
  if (row.name === "bash" && typeof command === "string") {
    const long = always || command.length > 60 || command.includes("\n");
    return long ? html`<pre class="command">${plainText(command)}</pre>` : nothing;
  }
  const shown = Object.entries(given).filter(
    ([name]) => name !== "path" && name !== "content" && name !== "edits",
  );
  if (shown.length === 0) return nothing;
  return html`<dl class="input">
    ${shown.map(([name, value]) => html`<dt>${oneLine(name)}</dt><dd>${oneLine(wordsOf(value)).slice(0, 400)}</dd>`)}
  </dl>`;
}

function wordsOf(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The content of a call that failed may hold advice for the model; then the details say what happened. */
function outputText(row: ToolRow, raw: string): string {
  const happened = field(row.details, "happened");
  const whole = typeof happened === "string" ? happened : raw;
  return plainText(whole.length > CHARACTERS_SHOWN ? whole.slice(-CHARACTERS_SHOWN) : whole).replace(
    /\n$/,
    "",
  );
}

function output(panel: Panel, row: ToolRow): View {
  const pictures = row.content.filter((block) => block.type === "image");
  const running = row.phase === "running";
  const raw = running ? row.output : textOf(row.content);
  if (!raw && pictures.length === 0) return nothing;
  const key = `output:${row.key}`;
  const text = outputText(row, raw);
  const lines = text.split("\n");
  const open = isOpen(panel, key, { usually: false });
  const room = running ? TAIL_LINES : LINES_SHOWN;
  const long = lines.length > room * 1.25 || row.outputCut > 0;
  const shown = open || !long ? lines : running ? lines.slice(-room) : lines.slice(0, room);
  return html`${pictures.map((block) => picture(block as Parameters<typeof picture>[0]))}
    <pre class="output" tabindex="0" role="region" aria-label="Output">${shown.join("\n")}</pre>
    ${long ? foot(panel, key, { open, lines: lines.length, cut: row.outputCut, raw }) : nothing}`;
}

function foot(
  panel: Panel,
  key: string,
  said: { open: boolean; lines: number; cut: number; raw: string },
): View {
  const more = said.cut > 0 ? ", what came before is not kept" : "";
  return html`<div class="foot">
    ${moreButton(panel, key, { open: said.open, all: `${plural(said.lines, "line")}${more}` })}
    <button type="button" class="more" @click=${() => panel.host.post({ type: "copy", text: said.raw })}>
      ${icon("copy")} Copy
    </button>
  </div>`;
}

function failure(panel: Panel, row: ToolRow): View {
  return row.status === "ok" || row.status === undefined ? nothing : output(panel, row);
}

function changedFiles(row: ToolRow): View {
  const files = field(row.details, "changed_files");
  if (!Array.isArray(files) || files.length === 0) return nothing;
  const count = field(row.details, "changed_count");
  const names = files.slice(0, 5).map((file) => String(file).split("/").at(-1));
  const rest = typeof count === "number" && count > names.length ? ` and ${count - names.length} more` : "";
  return html`<div class="dim pad">Changed ${oneLine(names.join(", "))}${rest}</div>`;
}

function field(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (value === null || value === undefined || typeof value !== "object" || Array.isArray(value))
    return undefined;
  return value[name];
}
