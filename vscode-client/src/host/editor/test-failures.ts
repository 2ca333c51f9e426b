// A failed test as a part of a prompt, from what the editor's test view gives to commands.

import type * as vscode from "vscode";
import type { Block } from "../../shared/wire.js";
import { fileBlock } from "../panel/selection.js";

const MOST_CHARS = 20_000;

/** Gives what is known of a failed test; nothing when the argument is none. */
export function testBlocks(given: unknown): Block[] {
  const { test, message } = parts(given);
  if (test === undefined) return [];
  const lines = [`Test: ${labels(test).join(" › ")}`];
  if (message !== undefined) {
    lines.push(`Message: ${textOf(message.message)}`);
    if (message.expectedOutput !== undefined) lines.push(`Expected: ${message.expectedOutput}`);
    if (message.actualOutput !== undefined) lines.push(`Actual: ${message.actualOutput}`);
  } else if (test.error !== undefined) {
    lines.push(`Error: ${textOf(test.error)}`);
  }
  const said: Block = { type: "text", text: lines.join("\n").slice(0, MOST_CHARS) };
  const place =
    message?.location ?? (test.uri === undefined ? undefined : { uri: test.uri, range: test.range });
  return place === undefined ? [said] : [said, fileBlock(place.uri, place.range)];
}

function parts(given: unknown): { test?: vscode.TestItem; message?: vscode.TestMessage } {
  if (typeof given !== "object" || given === null) return {};
  if ("test" in given) return given as { test: vscode.TestItem; message?: vscode.TestMessage };
  return "label" in given ? { test: given as vscode.TestItem } : {};
}

function labels(test: vscode.TestItem): string[] {
  return test.parent === undefined ? [test.label] : [...labels(test.parent), test.label];
}

function textOf(message: string | vscode.MarkdownString): string {
  return typeof message === "string" ? message : message.value;
}
