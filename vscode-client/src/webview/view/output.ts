// What a tool printed: the end of a command, the beginning of a listing, places as links; and what is left out.

import { html, nothing } from "lit";
import type { JsonValue } from "../../shared/wire.js";
import { colored, spansOf } from "../colored.js";
import { pathOf } from "../grouping.js";
import { openPath } from "../links.js";
import type { Panel } from "../panel-context.js";
import type { Picture } from "../pictures.js";
import { type ToolRow, textOf } from "../rows.js";
import { plainText } from "../safe-text.js";
import { countText, plural } from "../words.js";
import { moreButton } from "./folding.js";
import { icon, type View } from "./parts.js";
import { isOpen } from "./row-context.js";
import { picture } from "./said.js";

export const TAIL_LINES = 12;
const LINES_SHOWN = 24;
const CHARACTERS_SHOWN = 100_000;
/** Lines of more matches are plain text. */
const LINKED_MAX = 400;
/** Advice for the model beside a result that was cut: how to read on. People have buttons for it. */
const ADVICE: Readonly<Record<string, RegExp>> = {
  // What the command printed itself can look alike, but for the numbers of lines.
  bash: /\n\n\[Showing (?:lines \d+-\d+ of \d+|last \S+ of line \d+)[^\n]*\](?=\n\n|$)/,
  read: /\n\n\[(?:Showing lines \d+-\d+ of \d+|\d+ more lines in file\.)[^\n]*\]$/,
  grep: /\n\n\[[^\n]*(?:limit reached|truncated to)[^\n]*\]$/,
  find: /\n\n\[[^\n]*limit reached[^\n]*\]$/,
  ls: /\n\n\[[^\n]*limit reached[^\n]*\]$/,
};

export function output(panel: Panel, row: ToolRow): View {
  const pictures = row.content.filter((block) => block.type === "image");
  const raw = row.phase === "running" ? row.output : textOf(row.content);
  if (!raw && pictures.length === 0) return nothing;
  return html`${pictures.map((block) => picture(panel, block as Picture))} ${leftOut(panel, row)}
    ${raw ? printed(panel, row, raw) : nothing}`;
}

function printed(panel: Panel, row: ToolRow, raw: string): View {
  const key = `output:${row.key}`;
  const running = row.phase === "running";
  const text = outputText(row, raw);
  const lines = text.split("\n");
  const room = running ? TAIL_LINES : LINES_SHOWN;
  // The end of a command tells how it went; a listing is read from its beginning.
  const fromEnd = running || row.name === "bash" || row.status === "error";
  const spans = spansOf(field(row.details, "colors"));
  // The places of colours are those of the content; what is left out of it stands behind them.
  const isColored = spans.length > 0 && raw.startsWith(text.slice(0, spans.at(-1)?.[1]));
  const drawn = (shown: readonly string[]) => {
    if (!isColored) return linked(row, shown);
    const part = shown.join("\n");
    return colored(part, fromEnd ? text.length - part.length : 0, spans);
  };
  const region = (shown: readonly string[]) =>
    html`<pre class="output" tabindex="0" role="region" aria-label="Output">${drawn(shown)}</pre>`;
  if (lines.length <= room * 1.25) return region(lines);
  const open = isOpen(panel, key, { usually: false });
  const some = fromEnd ? lines.slice(-room) : lines.slice(0, room);
  const more = moreButton(panel, key, { open, all: plural(lines.length, "line") });
  return html`${fromEnd ? more : nothing} ${region(open ? lines : some)}
    <div class="foot">
      ${fromEnd ? nothing : more}
      <button type="button" class="more" @click=${() => panel.host.post({ type: "copy", text: raw })}>${icon("copy")} Copy</button>
    </div>`;
}

/** The content of a call that failed may hold advice for the model; then the details say what happened. */
function outputText(row: ToolRow, raw: string): string {
  const happened = field(row.details, "happened");
  // The lines that a call asked for need not be cut for more to be in the file.
  const isCut = field(row.details, "truncated") === true || row.name === "read";
  const advice = isCut ? ADVICE[row.name] : undefined;
  const whole = typeof happened === "string" ? happened : advice ? raw.replace(advice, "") : raw;
  return plainText(whole.length > CHARACTERS_SHOWN ? whole.slice(-CHARACTERS_SHOWN) : whole).replace(
    /\n$/,
    "",
  );
}

/** Says which part of the output this is, with the way to all of it. */
function leftOut(panel: Panel, row: ToolRow): View {
  if (row.outputCut > 0)
    return html`<div class="dim pad">${countText(row.outputCut)} earlier characters are not shown.</div>`;
  const cut = field(row.details, "truncation");
  const total = field(cut, "total_lines");
  const kept = field(cut, "output_lines");
  if (typeof total !== "number" || typeof kept !== "number" || kept >= total) return nothing;
  const which = row.name === "bash" ? "last" : "first";
  const path = field(row.details, "full_output");
  return html`<div class="dim pad">
    The ${which} ${kept.toLocaleString("en-US")} of ${plural(total, "line")} are kept here.
    ${
      typeof path === "string" && path
        ? html`<button type="button" class="link" @click=${() => openPath(panel, { path, line0: 0 })}>Open the full output</button>`
        : nothing
    }
  </div>`;
}

/** Makes the places of matches and listed files links. */
function linked(row: ToolRow, lines: readonly string[]): View | string {
  const place = PLACES[row.name];
  if (!place || row.status !== "ok" || lines.length > LINKED_MAX) return lines.join("\n");
  const base = pathOf(row) ?? "";
  return html`${lines.map((line, index) => html`${index > 0 ? "\n" : ""}${linkedLine(place, base, line)}`)}`;
}

/** How a line names its place: the path first, for matches with a line behind it. */
const PLACES: Readonly<Record<string, RegExp>> = {
  grep: /^(?<path>[^\s:][^:]*?)(?<mark>[:-])(?<line>\d+)\k<mark> /,
  find: /^(?<path>\S[^\n]*)$/,
};

function linkedLine(place: RegExp, base: string, line: string): View | string {
  const found = place.exec(line);
  const path = found?.groups?.["path"];
  if (!found || path === undefined || path.startsWith("[") || path.startsWith("(")) return line;
  const number = found.groups?.["line"];
  const address = below(base, path).split("/").map(encodeURIComponent).join("/");
  const shown = number === undefined ? path : `${path}:${number}`;
  const rest = number === undefined ? "" : line.slice(found[0].length - 2);
  return html`<a href=${number === undefined ? `./${address}` : `./${address}:${number}`}>${shown}</a>${rest}`;
}

/** Joins a path with the folder that was searched; a search of one file names only that. */
function below(base: string, path: string): string {
  const folder = base.replace(/^\.\//, "").replace(/\/$/, "");
  if (folder === "" || folder === "." || path.startsWith("/")) return path;
  return folder === path || folder.endsWith(`/${path}`) ? folder : `${folder}/${path}`;
}

export function field(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (value === null || value === undefined || typeof value !== "object" || Array.isArray(value))
    return undefined;
  return value[name];
}
