// What a review of two files found, as the extension tells the panel.

import type { ReviewMessage } from "../../src/shared/messages.js";

const URI = "file:///home/ada/project/src/parser.ts";

function at(line: number, end = line) {
  return { start: { line: line - 1, character: 2 }, end: { line: end - 1, character: 40 } };
}

export const REVIEW: ReviewMessage = {
  type: "review",
  base: "main",
  result: {
    run: "run-1",
    status: "completed",
    message: "Two files were changed. The parser loses the last line of a file without an end of line.",
    usage: {
      context: { used: null, size: 0 },
      tokens: { in: 5200, out: 700, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
    },
    changes: { id: "run-1", base: "run-1", files: [] },
    findings: [
      {
        uri: URI,
        diagnostic: {
          range: at(41, 43),
          severity: 1,
          code: "correctness",
          source: "tiller review",
          message: "The last line is lost\nA file that does not end with a line break loses its last line.",
          data: { fingerprint: "f1", suggestion: true },
        },
      },
      {
        uri: URI,
        diagnostic: {
          range: at(60),
          severity: 2,
          code: "security",
          source: "tiller review",
          message: "A path from outside is opened as it is\nCheck that it lies below the folder.",
          data: { fingerprint: "f2", suggestion: false },
        },
      },
      {
        uri: "file:///home/ada/project/README.md",
        diagnostic: {
          range: at(3),
          severity: 3,
          source: "tiller review",
          message: "<b>bold</b> \u202etxt.exe",
        },
      },
    ],
  },
};
