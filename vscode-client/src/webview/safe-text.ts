// Makes text of models, tools and files harmless to look at: nothing hidden, nothing turned around.

// Escape sequences of terminals: colours and cursor movements, titles and links.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;
// What turns writing around, joins nothing, or cannot be seen at all. Joiners stay: emoji need them.
const UNSEEN =
  /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

/** Takes terminal escapes out, and writes invisible and turning characters as their number. */
export function plainText(text: string): string {
  return text
    .replace(ESCAPES, "")
    .replace(/\r\n?/g, "\n")
    .replace(CONTROLS, (found) => String.fromCodePoint(0x2400 + ((found.charCodeAt(0) & 0x7f) % 0x7f)))
    .replace(UNSEEN, named);
}

/** The same in one line, for titles. */
export function oneLine(text: string): string {
  return plainText(text).replace(/\s+/g, " ").trim();
}

/** The same, without the commands of a terminal that an error names in brackets: the panel has buttons for them. */
export function errorLine(text: string): string {
  return oneLine(text.replace(/ \(tiller [^()\n]*\)/g, ""));
}

function named(found: string): string {
  const code = found.codePointAt(0) ?? 0;
  return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}
