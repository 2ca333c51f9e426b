// What can be worked out of hunks alone: the text before them, the next one, the one at a line. Pure.

import type { ChangeSet, Hunk, Range } from "../../shared/wire.js";

export interface ChangedFile {
  uri: string;
  op: "add" | "modify" | "delete" | "move";
  oldUri?: string;
  /** Those that wait for the user's word, in the order of the text. */
  hunks: Hunk[];
}

/** A hunk and the file that it is in. */
export interface Placed {
  uri: string;
  hunk: Hunk;
}

/** Gives the files in which something waits for the user's word, in the order of their names. */
export function waitingFiles(set: ChangeSet): ChangedFile[] {
  return set.files
    .map(({ uri, op, oldUri, hunks }) => ({
      uri,
      op: op as ChangedFile["op"],
      ...(oldUri === undefined ? {} : { oldUri }),
      hunks: hunks
        .filter((one) => one.state === "pending")
        .toSorted((one, other) => compare(one.after.start, other.after.start)),
    }))
    .filter((file) => file.hunks.length > 0)
    .toSorted((one, other) => (one.uri < other.uri ? -1 : one.uri > other.uri ? 1 : 0));
}

/** Gives the text as it was before these hunks. */
export function textBefore(text: string, hunks: readonly Hunk[]): string {
  const starts = lineStarts(text);
  const at = (place: Range["start"]) =>
    Math.min((starts[place.line] ?? text.length) + place.character, text.length);
  let before = text;
  for (const { after, oldText } of hunks.toSorted((one, other) =>
    compare(other.after.start, one.after.start),
  ))
    before = before.slice(0, at(after.start)) + oldText + before.slice(at(after.end));
  return before;
}

/** As VS Code counts lines: after each line feed, and after a carriage return that stands alone. */
function lineStarts(text: string): number[] {
  const starts = [0];
  for (const found of text.matchAll(/\r\n|\n|\r/g)) starts.push(found.index + found[0].length);
  return starts;
}

/** Gives the lines that a hunk stands on, end exclusive; at least one, also where lines were only taken away. */
export function linesOf({ after }: Hunk): { start: number; end: number } {
  const start = after.start.line;
  const last = after.end.character === 0 ? after.end.line : after.end.line + 1;
  return { start, end: Math.max(last, start + 1) };
}

export function isDeletion({ after }: Hunk): boolean {
  return after.start.line === after.end.line && after.start.character === after.end.character;
}

export function hunkAt(file: ChangedFile | undefined, line: number): Hunk | undefined {
  return file?.hunks.find((one) => {
    const { start, end } = linesOf(one);
    return line >= start && line < end;
  });
}

/** Gives the hunk after or before a place, going on in the other files and at last from the other end. */
export function neighbour(
  files: readonly ChangedFile[],
  from: { uri: string; line: number } | undefined,
  direction: 1 | -1,
): Placed | undefined {
  const all = files.flatMap(({ uri, hunks }) => hunks.map((hunk) => ({ uri, hunk })));
  const ordered = direction === 1 ? all : all.toReversed();
  if (from === undefined) return ordered[0];
  return ordered.find((one) => isBeyond(one, from, direction)) ?? ordered[0];
}

function isBeyond({ uri, hunk }: Placed, from: { uri: string; line: number }, direction: 1 | -1): boolean {
  if (uri !== from.uri) return direction === 1 ? uri > from.uri : uri < from.uri;
  const { start, end } = linesOf(hunk);
  return direction === 1 ? start > from.line : end - 1 < from.line;
}

function compare(one: Range["start"], other: Range["start"]): number {
  return one.line - other.line || one.character - other.character;
}
