// Makes text of models, tools and files harmless to look at: nothing hidden, nothing turned around.

import { TERMINAL_ESCAPES } from "../shared/escapes.js";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;
// What turns writing around, joins nothing, or cannot be seen at all. Joiners stay: emoji need them.
const UNSEEN =
  /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

/** Takes terminal escapes out, and writes invisible and turning characters as their number. */
export function plainText(text: string): string {
  return text
    .replace(TERMINAL_ESCAPES, "")
    .replace(/\r\n?/g, "\n")
    .replace(CONTROLS, (found) => String.fromCodePoint(0x2400 + ((found.charCodeAt(0) & 0x7f) % 0x7f)))
    .replace(UNSEEN, named);
}

/** The same in one line, for titles. */
export function oneLine(text: string): string {
  return plainText(text).replace(/\s+/g, " ").trim();
}

/** Takes out the commands of a terminal that a message names in brackets: the panel has buttons for them. */
export function withoutCommands(text: string): string {
  return text.replace(/ \(tiller [^()\n]*\)/g, "");
}

/** Writes a message for people in one line. */
export function errorLine(text: string): string {
  return oneLine(withoutCommands(text));
}

function named(found: string): string {
  const code = found.codePointAt(0) ?? 0;
  return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}
