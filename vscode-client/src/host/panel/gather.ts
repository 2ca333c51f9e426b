// What can be named with @ besides files: the selection, the problems, the last terminal command, uncommitted changes.

import * as vscode from "vscode";
import { TERMINAL_ESCAPES } from "../../shared/escapes.js";
import type { Gathered } from "../../shared/messages.js";
import type { Block } from "../../shared/wire.js";
import { repositoryOf } from "../editor/git.js";
import { diagnosticsBlock, selectionBlocks } from "./selection.js";
import type { Terminals } from "./terminals.js";

const MOST_FILES = 50;
const MOST_PROBLEMS = 200;
const DIFF_CHARS = 200_000;

/** Gives what was asked for as parts of a prompt. Throws, with what to do, when there is nothing. */
export async function gather(what: Gathered, terminals: Terminals): Promise<Block[]> {
  switch (what) {
    case "selection":
      return some(selectionBlocks(), "Nothing is selected in the editor.");
    case "problems":
      return some(problems(), "There are no errors or warnings in the Problems view.");
    case "terminal":
      return [terminal(terminals)];
    case "git":
      return [await uncommitted()];
  }
}

function some(blocks: Block[], none: string): Block[] {
  if (blocks.length === 0) throw new Error(none);
  return blocks;
}

/** Errors and warnings, by file; hints are left out. */
function problems(): Block[] {
  let room = MOST_PROBLEMS;
  return vscode.languages
    .getDiagnostics()
    .map(([uri, all]) => ({
      uri,
      items: all.filter((one) => one.severity <= vscode.DiagnosticSeverity.Warning),
    }))
    .filter(({ items }) => items.length > 0)
    .slice(0, MOST_FILES)
    .flatMap(({ uri, items }) => {
      const taken = items.slice(0, room);
      room -= taken.length;
      return taken.length > 0 ? [diagnosticsBlock(uri, taken)] : [];
    });
}

function terminal(terminals: Terminals): Block {
  const last = terminals.last;
  if (last === undefined)
    throw new Error(
      "No terminal command was seen in this window. Run one in a terminal with shell integration (VS Code 1.93 or newer).",
    );
  const code = last.exitCode === undefined ? "" : `\n[exit code ${last.exitCode}]`;
  return {
    type: "resource",
    uri: "terminal:/last-command",
    text: `$ ${last.command}\n${last.output.replace(TERMINAL_ESCAPES, "").replaceAll("\r\n", "\n")}${code}`,
  };
}

/** Gives the changes of the repository of the file in front. */
async function uncommitted(): Promise<Block> {
  const repository = await repositoryOf(vscode.window.activeTextEditor?.document.uri);
  const parts = await Promise.all([repository.diff(true), repository.diff(false)]);
  const patch = parts.filter((one) => one.trim() !== "").join("\n");
  if (patch === "") throw new Error("There are no uncommitted changes to tracked files.");
  if (patch.length > DIFF_CHARS)
    throw new Error(
      `The uncommitted changes have ${patch.length.toLocaleString("en-US")} characters; at most ${DIFF_CHARS.toLocaleString("en-US")} can be attached. Name the files with @ instead.`,
    );
  return { type: "diff", patch };
}
