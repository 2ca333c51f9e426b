// The colours that a command gave its output. The server sends them as spans of the text, without control sequences.

import { html } from "lit";
import type { JsonValue } from "../shared/wire.js";
import type { View } from "./view/parts.js";

/** Start and end in the text, and parameters of a select graphic rendition sequence, `1;31`. */
export type Span = readonly [start: number, end: number, style: string];

/** Colours of the palette and colours by red, green and blue. */
const EXTENDED = /\b[34]8;(?:5;\d+|2;\d+;\d+;\d+)/g;
/** Class names by parameter. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ["1", "ansi-bold"],
  ["2", "ansi-dim"],
  ["3", "ansi-italic"],
  ["4", "ansi-underline"],
  ["7", "ansi-inverse"],
  ["9", "ansi-strike"],
  ...range("ansi-", 0, 30),
  ...range("ansi-", 8, 90),
  ...range("ansi-on-", 0, 40),
  ...range("ansi-on-", 8, 100),
]);

/** Returns the names of eight colours, of which the first has the number `color` and the parameter `parameter`. */
function range(prefix: string, color: number, parameter: number): [string, string][] {
  return Array.from({ length: 8 }, (_, index) => [`${parameter + index}`, `${prefix}${color + index}`]);
}

/** Returns the spans of the details of a call; none when one of them is no span. */
export function spansOf(value: JsonValue | undefined): readonly Span[] {
  const spans = Array.isArray(value) ? value : [];
  const isSpan = (one: JsonValue) =>
    Array.isArray(one) &&
    typeof one[0] === "number" &&
    typeof one[1] === "number" &&
    typeof one[2] === "string";
  return spans.every(isSpan) ? (spans as unknown as Span[]) : [];
}

/** Returns the class names of a style. Colours beyond the sixteen of terminals are left out: a theme does not define them. */
export function classesOf(style: string): string {
  const parts = style.replace(EXTENDED, "").split(";");
  return parts.flatMap((part) => NAMES.get(part) ?? []).join(" ");
}

/** Shows a part of a text in its colours; `from` is where it begins in the text that the spans are of. */
export function colored(part: string, from: number, spans: readonly Span[]): View | string {
  const pieces: (View | string)[] = [];
  let place = 0;
  for (const [start, end, style] of spans) {
    const first = Math.max(start - from, place);
    const last = Math.min(end - from, part.length);
    if (last <= first) continue;
    pieces.push(
      part.slice(place, first),
      html`<span class=${classesOf(style)}>${part.slice(first, last)}</span>`,
    );
    place = last;
  }
  return pieces.length === 0 ? part : html`${pieces}${part.slice(place)}`;
}
