// The commands by which a user goes from change to change, and keeps or rejects it.

import * as vscode from "vscode";
import type { Resolution } from "../../shared/wire.js";
import type { Changes } from "./changes.js";
import type { Compare } from "./compare.js";
import { hunkAt, linesOf, neighbour, rejectionQuestion } from "./hunks.js";

type Action = "accept" | "reject";
type Act = (...words: never[]) => Promise<unknown>;

/** Gives the commands by name. */
export function reviewActs(
  changes: Changes,
  compare: Compare,
  session: () => string | undefined,
): Record<string, Act> {
  const hunk = (action: Action) => (id?: string) => decideHunk(changes, action, id);
  const file = (action: Action) => (uri?: string | vscode.Uri) => decideFile(changes, action, uri);
  const all = (action: Action) => () => decideAll(changes, action, session());
  return {
    "tiller.nextChange": () => go(changes, 1),
    "tiller.previousChange": () => go(changes, -1),
    "tiller.acceptHunk": hunk("accept"),
    "tiller.rejectHunk": hunk("reject"),
    "tiller.acceptFile": file("accept"),
    "tiller.rejectFile": file("reject"),
    "tiller.acceptAll": all("accept"),
    "tiller.rejectAll": all("reject"),
    "tiller.showAllDiffs": () => compare.showAll(),
    "tiller.showDiff": async (uri?: string | vscode.Uri, id?: string) => {
      const target = fileOf(uri);
      if (target !== undefined) await compare.show(target, typeof id === "string" ? id : undefined);
    },
  };
}

async function go(changes: Changes, direction: 1 | -1): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const from =
    editor === undefined
      ? undefined
      : { uri: editor.document.uri.toString(), line: editor.selection.active.line };
  const found = neighbour(changes.files, from, direction);
  if (found === undefined) {
    void vscode.window.showInformationMessage("Tiller: there are no changes to review.");
    return;
  }
  const uri = vscode.Uri.parse(found.uri, true);
  if (changes.of(uri)?.op === "delete") return void vscode.commands.executeCommand("tiller.showDiff", uri);
  const { start } = linesOf(found.hunk);
  const place = new vscode.Range(start, 0, start, 0);
  const shown = await vscode.window.showTextDocument(uri, { selection: place, preview: true });
  shown.revealRange(place, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

async function decideHunk(changes: Changes, action: Action, id: string | undefined): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const here = editor && hunkAt(changes.of(editor.document.uri), editor.selection.active.line)?.id;
  const hunk = typeof id === "string" ? id : here;
  if (hunk === undefined) {
    void vscode.window.showInformationMessage("Tiller: there is no change to review at the cursor.");
    return;
  }
  await decide(changes, [{ hunk, action }]);
}

async function decideFile(
  changes: Changes,
  action: Action,
  uri: string | vscode.Uri | undefined,
): Promise<void> {
  const file = fileOf(uri)?.toString();
  if (file !== undefined) await decide(changes, [{ file, action }]);
}

async function decideAll(changes: Changes, action: Action, session: string | undefined): Promise<void> {
  if (session === undefined) return;
  if (action === "reject") {
    const { question, detail } = rejectionQuestion(await changes.list());
    const answer = await vscode.window.showWarningMessage(question, { modal: true, detail }, "Reject All");
    if (answer === undefined) return;
  }
  await decide(changes, [{ changeSet: session, action }]);
}

async function decide(changes: Changes, items: Resolution[]): Promise<void> {
  const results = await changes.resolve(items);
  if (results.some((one) => one.status === "conflict")) {
    const text = "Tiller: not rejected, because these lines were changed or decided meanwhile.";
    void vscode.window.showWarningMessage(text);
  }
}

function fileOf(uri: string | vscode.Uri | undefined): vscode.Uri | undefined {
  if (uri instanceof vscode.Uri) return uri;
  return typeof uri === "string" ? vscode.Uri.parse(uri, true) : vscode.window.activeTextEditor?.document.uri;
}
