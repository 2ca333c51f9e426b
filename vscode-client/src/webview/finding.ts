// The search in the transcript: which cells hold the words, and where they are marked. Marks are the browser's highlights.

import type { Cell } from "./cells.js";
import { textOf } from "./rows.js";
import { plainText } from "./safe-text.js";

const MARK = "tiller-find";

/** Gives the indexes of the cells that hold the query, ignoring case. Pure. */
export function matchesOf(cells: readonly Cell[], query: string): number[] {
  const wanted = query.toLowerCase();
  if (wanted === "") return [];
  return cells.flatMap((cell, index) => (loweredText(cell).includes(wanted) ? [index] : []));
}

/** Cells that did not change are the same objects: a long conversation is lowered once. */
const lowered = new WeakMap<Cell, string>();

function loweredText(cell: Cell): string {
  let text = lowered.get(cell);
  if (text === undefined) {
    text = searchedText(cell).toLowerCase();
    lowered.set(cell, text);
  }
  return text;
}

function searchedText({ row, chunk }: Cell): string {
  if (chunk) return chunk.kind === "prose" ? chunk.source : chunk.text;
  switch (row.kind) {
    case "said":
    case "thought":
    case "summary":
    case "notice":
      return row.text;
    case "tool":
      return plainText(`${row.title}\n${row.output}${textOf(row.content)}`);
    case "shell":
      return plainText(`${row.command}\n${row.output}`);
    case "runEnd":
      return row.error?.message ?? "";
    case "answered":
      return row.title;
    case "retry":
      return row.errors.join("\n");
    default:
      return "";
  }
}

/** Marks each place of the query below an element; an empty query takes all marks away. */
export function markMatches(element: Element, query: string): void {
  if (typeof CSS === "undefined" || !("highlights" in CSS)) return;
  CSS.highlights.delete(MARK);
  const wanted = query.toLowerCase();
  if (wanted === "") return;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = (node.textContent ?? "").toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      ranges.push(range);
    }
  }
  CSS.highlights.set(MARK, new Highlight(...ranges));
}
