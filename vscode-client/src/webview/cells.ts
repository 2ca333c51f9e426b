// The transcript as a list of cells: rows, and the pieces of long ones, each with a name of its own.

import type { Chunk, Chunker } from "./chunks.js";
import type { Row } from "./rows.js";

export interface Cell {
  key: string;
  row: Row;
  chunk?: Chunk;
}

/** Gives the cells of rows; those of a row that did not change are the same objects as before. */
export class CellList {
  readonly #chunker: Chunker;
  #known = new WeakMap<Row, readonly Cell[]>();

  constructor(chunker: Chunker) {
    this.#chunker = chunker;
  }

  cells(rows: readonly Row[]): readonly Cell[] {
    const all: Cell[] = [];
    for (const row of rows) {
      let known = this.#known.get(row);
      if (!known) {
        known = this.#cellsOf(row);
        this.#known.set(row, known);
      }
      for (const cell of known) all.push(cell);
    }
    return all;
  }

  #cellsOf(row: Row): readonly Cell[] {
    if (row.kind === "said" && row.role === "assistant") {
      const chunks = this.#chunker.chunks(row.key, row.text, { streaming: row.streaming });
      return chunks.map((chunk, index) => ({ key: `${row.key}/${index}`, row, chunk }));
    }
    if (row.kind === "said" && !row.text && row.blocks.length === 0) return [];
    return [{ key: row.key, row }];
  }
}

/** Guesses the height of a cell, in pixels, until it was measured. */
export function guessedHeight(cell: Cell): number {
  if (cell.chunk) {
    const text = cell.chunk.kind === "prose" ? cell.chunk.source : cell.chunk.text;
    if (cell.chunk.kind === "code") return 60 + 18 * Math.min(40, text.split("\n").length);
    return 16 + 20 * Math.ceil(text.length / 48);
  }
  switch (cell.row.kind) {
    case "tool":
      if (cell.row.name === "task") return 150;
      return cell.row.phase === "ended" ? 38 : 120;
    case "said":
      return 70;
    default:
      return 34;
  }
}
