// Plans as Markdown documents that the user may edit before they are approved.

import * as vscode from "vscode";

/** Documents by the hash of the plan that they began with. */
const documents = new Map<string, vscode.TextDocument>();

/** Opens a plan as a Markdown document; one that is open already is shown again. */
export async function editPlan(sha256: string, markdown: string): Promise<void> {
  const open = openDocument(sha256);
  const document =
    open ?? (await vscode.workspace.openTextDocument({ language: "markdown", content: markdown }));
  documents.set(sha256, document);
  await vscode.window.showTextDocument(document);
}

/** Gives the text of the document of a plan; nothing when it is not open. */
export function editedPlan(sha256: string): string | undefined {
  return openDocument(sha256)?.getText();
}

function openDocument(sha256: string): vscode.TextDocument | undefined {
  const document = documents.get(sha256);
  if (document?.isClosed) documents.delete(sha256);
  return document?.isClosed ? undefined : document;
}
