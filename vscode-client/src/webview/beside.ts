// What the server writes beside the user's words for the model, taken back into the things that were sent along.

import type { Block } from "../shared/wire.js";

const FENCED =
  /^<(editor-context|resource|selection|diagnostics|diff)(?: uri="([^"]*)")?>\n([\s\S]*)\n<\/\1>$/;
const POINTED = /^The user points at (\S+?)(?:, lines? \d+(?: to \d+)?)?; read it when it matters\.$/;

/** Gives the things that a text of the user stands for; undefined when it is words. */
export function besideOf(text: string): Block[] | undefined {
  const pointed = POINTED.exec(text)?.[1];
  if (pointed) return [{ type: "resource", uri: pointed }];
  const found = FENCED.exec(text);
  if (!found) return undefined;
  const [, tag, quoted = "", inner = ""] = found;
  const uri = unquoted(quoted);
  switch (tag) {
    case "editor-context":
      return [];
    case "diff":
      return [{ type: "diff", patch: inner }];
    case "diagnostics": {
      const items = inner.split("\n").map((message) => ({ message, range: NOWHERE }));
      return [{ type: "diagnostics", uri, items }];
    }
    default:
      return [{ type: "resource", uri, text: inner }];
  }
}

const NOWHERE = { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } };

function unquoted(text: string): string {
  return text
    .replace(/&quot;/g, '"')
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&amp;/g, "&");
}
