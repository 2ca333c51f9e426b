// The documents of plans in VS Code.

import * as vscode from "vscode";
import type { PlanDocument, PlanEditor } from "./plan-documents.js";

export const planEditor: PlanEditor = {
  create: async (content) => vscode.workspace.openTextDocument({ language: "markdown", content }),
  show: async ({ uri }: PlanDocument) => {
    await vscode.window.showTextDocument(vscode.Uri.parse(uri.toString()));
  },
  find: async (uri) => (isShown(uri) ? vscode.workspace.openTextDocument(vscode.Uri.parse(uri)) : undefined),
};

/** Tells of each document that was closed, with its last tab. */
export function onClosed(closed: (uri: string) => void): vscode.Disposable {
  // A tab that moves, or a document that gets another language, is closed and there again.
  const isOpen = (uri: string) =>
    isShown(uri) || vscode.workspace.textDocuments.some((one) => one.uri.toString() === uri);
  const look = (uris: readonly string[]) => {
    for (const uri of uris) if (!isOpen(uri)) closed(uri);
  };
  return vscode.Disposable.from(
    vscode.window.tabGroups.onDidChangeTabs((event) => look(urisOf(event.closed))),
    vscode.workspace.onDidCloseTextDocument(({ uri }) => look([uri.toString()])),
  );
}

function isShown(uri: string): boolean {
  return vscode.window.tabGroups.all.some((group) => urisOf(group.tabs).includes(uri));
}

function urisOf(tabs: readonly vscode.Tab[]): string[] {
  return tabs.flatMap(({ input }) => (input instanceof vscode.TabInputText ? [input.uri.toString()] : []));
}
