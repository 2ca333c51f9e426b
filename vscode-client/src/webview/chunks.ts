// Cuts Markdown into pieces that can be shown, measured and kept one by one, also while it still grows.

import { parser, wordOf } from "./markdown.js";
import { plainText } from "./safe-text.js";

export type Chunk =
  | { kind: "prose"; source: string }
  | { kind: "code"; language: string; path: string; text: string; open: boolean }
  /** Too long to be looked at as Markdown: shown as it stands. */
  | { kind: "plain"; text: string };

/** A finished piece grows up to here before the next begins. */
const JOINED_MAX = 1200;
/** A paragraph that is longer is cut: laying it out anew for each word would take too long. */
const PARAGRAPH_MAX = 8000;
/** A list or table that is longer is shown as it stands. */
const BLOCK_MAX = 64_000;

interface Memo {
  raw: string;
  /** The text up to `end` of `done` never changes again. */
  text: string;
  end: number;
  done: Chunk[];
  all: readonly Chunk[];
  streaming: boolean;
}

/** Cuts growing texts; what was cut before is not looked at again. */
export class Chunker {
  readonly #memos = new Map<string, Memo>();

  clear(): void {
    this.#memos.clear();
  }

  /**
   * Gives the pieces of a text.
   *
   * Args:
   *   key: Names the text; the same name is the same text, grown.
   */
  chunks(key: string, raw: string, { streaming }: { streaming: boolean }): readonly Chunk[] {
    const known = this.#memos.get(key);
    if (known && known.raw === raw && known.streaming === streaming) return known.all;
    const grown = known !== undefined && raw.startsWith(known.raw);
    const text = grown && known ? known.text + plainText(raw.slice(known.raw.length)) : plainText(raw);
    const done = grown && known ? known.done.slice() : [];
    const start = grown && known ? known.end : 0;
    const { closed, tail, end } = cut(text, start);
    for (const chunk of closed) join(done, chunk);
    const all = [...done, ...tail.map((chunk) => (streaming ? chunk : { ...chunk, open: false }))] as Chunk[];
    this.#memos.set(key, { raw, text, end, done, all, streaming });
    return all;
  }
}

/** Cuts what begins at `start`; all but the last block is closed. */
function cut(text: string, start: number): { closed: Chunk[]; tail: Chunk[]; end: number } {
  const rest = text.slice(start);
  const lines = lineStarts(rest);
  const blocks = parser
    .parse(rest, {})
    .filter((token) => token.level === 0 && token.map && token.nesting >= 0);
  const closed: Chunk[] = [];
  let end = start;
  let tail: Chunk[] = [];
  for (const [index, token] of blocks.entries()) {
    const from = lines[token.map?.[0] ?? 0] ?? 0;
    const next = blocks[index + 1]?.map?.[0];
    const to = next === undefined ? rest.length : (lines[next] ?? rest.length);
    const pieces = piecesOf(rest.slice(from, to), token);
    if (next !== undefined) {
      closed.push(...pieces);
      end = start + to;
    } else {
      // Of a paragraph that was cut only the last piece can still change.
      const sure = token.type === "paragraph_open" ? pieces.slice(0, -1) : [];
      closed.push(...sure);
      end = start + from + sure.reduce((sum, one) => sum + sourceOf(one).length, 0);
      tail = pieces.slice(sure.length);
    }
  }
  return { closed, tail, end };
}

type Token = ReturnType<typeof parser.parse>[number];

function piecesOf(source: string, token: Token): Chunk[] {
  if (token.type === "fence" || token.type === "code_block") return [codeOf(source, token)];
  if (token.type === "paragraph_open") return paragraphs(source);
  if (source.length > BLOCK_MAX) return [{ kind: "plain", text: source }];
  return [{ kind: "prose", source }];
}

function codeOf(source: string, token: Token): Chunk {
  const closing = source.trimEnd().split("\n").at(-1)?.trim() ?? "";
  const closed = token.type === "code_block" || (token.markup !== "" && closing.startsWith(token.markup));
  const info = token.info.trim();
  // Models name the file as ```python src/a.py, ```python:src/a.py or ```src/a.py.
  const path = /(?:^|[\s:=])"?([\w@./-]+\.[\w]+)"?\s*$/.exec(info)?.[1] ?? "";
  const language = wordOf(info === path ? path.slice(path.lastIndexOf(".") + 1) : info);
  return { kind: "code", language, path, text: token.content, open: !closed };
}

function paragraphs(source: string): Chunk[] {
  const pieces: Chunk[] = [];
  let from = 0;
  while (source.length - from > PARAGRAPH_MAX) {
    const room = source.slice(from, from + PARAGRAPH_MAX);
    const at = Math.max(room.lastIndexOf("\n"), room.lastIndexOf(" "));
    const to = from + (at > PARAGRAPH_MAX / 2 ? at + 1 : PARAGRAPH_MAX);
    pieces.push({ kind: "prose", source: source.slice(from, to) });
    from = to;
  }
  return [...pieces, { kind: "prose", source: source.slice(from) }];
}

function sourceOf(chunk: Chunk): string {
  return chunk.kind === "prose" ? chunk.source : chunk.text;
}

function join(done: Chunk[], chunk: Chunk): void {
  const last = done.at(-1);
  const fits = last?.kind === "prose" && chunk.kind === "prose";
  if (fits && last.source.length + chunk.source.length <= JOINED_MAX) {
    done[done.length - 1] = { kind: "prose", source: last.source + chunk.source };
    return;
  }
  done.push(chunk.kind === "code" ? { ...chunk, open: false } : chunk);
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}
