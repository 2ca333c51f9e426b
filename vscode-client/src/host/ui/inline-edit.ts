// Changes the code at the cursor by an instruction, as a prompt of the session: the same verified edits, undo and review.

import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { fileBlock, selectionBlocks } from "../panel/selection.js";
import { ofSession, type Window } from "../window.js";

/** Asks for an instruction, sends it with the selection or the line of the cursor, and leaves the focus in the text. */
export async function inlineEdit(window: Window): Promise<void> {
  const { daemon, panel, watch } = window;
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) return;
  const { document, selection } = editor;
  const name = vscode.workspace.asRelativePath(document.uri);
  const first = selection.start.line + 1;
  const last = Math.max(first, selection.end.line + (selection.end.character === 0 ? 0 : 1));
  const place = first === last ? `line ${first}` : `lines ${first}–${last}`;
  const instruction = await vscode.window.showInputBox({
    title: `Edit ${name}, ${place}`,
    placeHolder: "Describe the change",
    prompt: watch.now?.run === undefined ? "Enter to edit" : "Enter to edit when the current run is done",
  });
  if (!instruction?.trim()) return;
  const line = document.lineAt(selection.active.line).range;
  const blocks = selection.isEmpty ? [fileBlock(document.uri, line)] : selectionBlocks(editor);
  const text = `Edit ${name}, ${place}: ${instruction.trim()}`;
  if (!daemon.state.ready || watch.now?.model == null) {
    await panel.compose({ text, blocks, focus: true });
    return;
  }
  await daemon.request("agent/prompt", {
    ...ofSession(window),
    messageId: randomUUID(),
    content: [...blocks, { type: "text", text }],
    delivery: "followUp",
  });
}
