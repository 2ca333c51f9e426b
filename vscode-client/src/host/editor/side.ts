// What Tiller adds to the editor itself, joined: marks, lenses, diffs, quick fixes, and answers to the server.

import * as vscode from "vscode";
import type { Others } from "../agent/others.js";
import type { AgentPort } from "../agent/port.js";
import type { SessionFeed } from "../agent/session-feed.js";
import type { Daemon } from "../server/daemon.js";
import { answerServer } from "./answers.js";
import { Attention } from "./attention.js";
import { Changes } from "./changes.js";
import { BEFORE, Compare } from "./compare.js";
import { Lenses } from "./lenses.js";
import { Marks } from "./marks.js";
import { Problems } from "./problems.js";
import { QuickFixes } from "./quick-fixes.js";
import { reviewActs } from "./review.js";
import { Suggestions } from "./suggestions.js";
import { TASK, TaskDiffs } from "./task-diffs.js";

const DOCUMENTS: vscode.DocumentSelector = [{ scheme: "file" }, { scheme: "untitled" }];

export interface EditorSide {
  acts: ReturnType<typeof reviewActs>;
  suggestions: Suggestions;
  attention: Attention;
  taskDiffs: TaskDiffs;
  parts: vscode.Disposable[];
}

/** Builds it; `acts` are commands that somebody has to register. */
export function makeEditorSide(
  daemon: Daemon & AgentPort,
  { feed, others, log }: { feed: SessionFeed; others: Others; log: vscode.LogOutputChannel },
): EditorSide {
  const changes = new Changes(daemon, { feed, others }, log);
  const compare = new Compare(changes);
  const taskDiffs = new TaskDiffs(daemon, () => feed.session);
  const lenses = new Lenses(changes);
  const problems = new Problems();
  const attention = new Attention(daemon);
  const suggestions = new Suggestions();
  daemon.made.listen((client) => suggestions.follow(client));
  daemon.made.listen((client) => answerServer(client, problems, () => changes.refresh()));
  daemon.serving.listen(() => attention.again());
  const tell = () => tellKeys(changes);
  changes.changed.listen(tell);
  const parts: vscode.Disposable[] = [
    changes,
    problems,
    attention,
    new Marks(changes),
    vscode.window.onDidChangeActiveTextEditor(tell),
    vscode.languages.registerCodeLensProvider(DOCUMENTS, lenses),
    vscode.languages.registerCodeActionsProvider(DOCUMENTS, new QuickFixes(), {
      providedCodeActionKinds: QuickFixes.kinds,
    }),
    vscode.languages.registerCodeActionsProvider(DOCUMENTS, suggestions, {
      providedCodeActionKinds: [Suggestions.kind],
    }),
    vscode.workspace.registerTextDocumentContentProvider(BEFORE, compare),
    vscode.workspace.registerTextDocumentContentProvider(TASK, taskDiffs),
  ];
  return { acts: reviewActs(changes, compare, () => feed.session), suggestions, attention, taskDiffs, parts };
}

/** Keys and menus depend on whether something waits in the file that the user looks at. */
function tellKeys(changes: Changes): void {
  const editor = vscode.window.activeTextEditor;
  const has = editor !== undefined && changes.of(editor.document.uri) !== undefined;
  void vscode.commands.executeCommand("setContext", "tiller.fileHasChanges", has);
}
