// What can be worked out of hunks alone: the text before them, the next one, the one at a line. Pure.

import type { ChangeSet, FileChange, Hunk, Range } from "../../shared/wire.js";

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

/** Joins what waits in several sessions; of a file that more than one of them changed the hunks stand together. */
export function joined(sets: readonly (readonly ChangedFile[])[]): ChangedFile[] {
  const files = new Map<string, ChangedFile>();
  for (const file of sets.flat()) {
    const known = files.get(file.uri);
    const hunks = [...(known?.hunks ?? []), ...file.hunks];
    const ordered = hunks.toSorted((one, other) => compare(one.after.start, other.after.start));
    files.set(file.uri, { ...(known ?? file), hunks: ordered });
  }
  return [...files.values()].toSorted((one, other) => (one.uri < other.uri ? -1 : 1));
}

/** Gives the sessions whose changes wait, by the ids of the hunks and the URIs of the files. */
export function ownersIn(
  sets: readonly { session: string; files: readonly ChangedFile[] }[],
): Map<string, string[]> {
  const owners = new Map<string, string[]>();
  for (const { session, files } of sets)
    for (const { uri, hunks } of files)
      for (const name of [uri, ...hunks.map(({ id }) => id)])
        owners.set(name, [...(owners.get(name) ?? []), session]);
  return owners;
}

const NAMES_SHOWN = 5;

/** Words the question before everything is rejected, with the files that this deletes. */
export function rejectionQuestion(set: ChangeSet): { question: string; detail: string } {
  const files = set.files.filter(waits);
  const hunks = files.reduce(
    (sum, file) => sum + Math.max(file.hunks.filter(({ state }) => state === "pending").length, 1),
    0,
  );
  const made = files.filter((file) => file.op === "add").map(({ uri }) => nameOf(uri));
  const more = made.length - NAMES_SHOWN;
  const names = made.slice(0, NAMES_SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
  return {
    question: `Reject ${counted(hunks, "change")} in ${counted(files.length, "file")}?`,
    detail: [
      ...(made.length === 0 ? [] : [`This deletes ${names}.`]),
      "What you have changed yourself stays. The newest checkpoint brings back what is rejected.",
    ].join(" "),
  };
}

/** A file without hunks, such as a picture, waits as a whole; whether it was decided is not told. */
function waits({ hunks }: FileChange): boolean {
  return hunks.length === 0 || hunks.some(({ state }) => state === "pending");
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function nameOf(uri: string): string {
  return decodeURIComponent(uri.slice(uri.lastIndexOf("/") + 1));
}

/** Gives the text as it was before these hunks. */
export function textBefore(text: string, hunks: readonly Hunk[]): string {
  return replaced(
    text,
    hunks.map(({ after, oldText }) => ({ range: after, text: oldText })),
  );
}

/** Gives the text as it is with these hunks, from the text before them. */
export function textAfter(text: string, hunks: readonly Hunk[]): string {
  return replaced(
    text,
    hunks.map(({ before, newText }) => ({ range: before, text: newText })),
  );
}

function replaced(text: string, parts: readonly { range: Range; text: string }[]): string {
  const starts = lineStarts(text);
  const at = (place: Range["start"]) =>
    Math.min((starts[place.line] ?? text.length) + place.character, text.length);
  let made = text;
  for (const part of parts.toSorted((one, other) => compare(other.range.start, one.range.start)))
    made = made.slice(0, at(part.range.start)) + part.text + made.slice(at(part.range.end));
  return made;
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
