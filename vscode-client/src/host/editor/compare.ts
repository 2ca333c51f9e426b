// The native diff view: what a file was without the agent's changes, beside what it is.

import * as vscode from "vscode";
import type { Changes } from "./changes.js";
import { readDocument } from "./documents.js";
import { textBefore } from "./hunks.js";

export const BEFORE = "tiller-before";

export class Compare implements vscode.TextDocumentContentProvider {
  readonly #changes: Changes;
  readonly #renewed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#renewed.event;

  constructor(changes: Changes) {
    this.#changes = changes;
    changes.changed.listen(() => {
      for (const one of vscode.workspace.textDocuments)
        if (one.uri.scheme === BEFORE) this.#renewed.fire(one.uri);
    });
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const file = vscode.Uri.parse(uri.query, true);
    return textBefore(await textOf(file), this.#changes.of(file)?.hunks ?? []);
  }

  /** Opens the diff of a file, at a hunk if one is named. */
  async show(file: vscode.Uri, hunk?: string): Promise<void> {
    const change = this.#changes.of(file);
    const found = change?.hunks.find((one) => one.id === hunk) ?? change?.hunks[0];
    const name = file.path.split("/").at(-1) ?? file.path;
    const before = file.with({ scheme: BEFORE, query: file.toString() });
    const now = change?.op === "delete" ? await emptied(file) : file;
    const line = found?.after.start.line ?? 0;
    const selection = new vscode.Range(line, 0, line, 0);
    await vscode.commands.executeCommand("vscode.diff", before, now, `${name}: before Tiller ↔ now`, {
      selection,
    });
  }

  /** Opens the changes of all files in one diff editor. */
  async showAll(): Promise<void> {
    const files = this.#changes.files.map((one) => vscode.Uri.parse(one.uri, true));
    if (files.length === 0) {
      void vscode.window.showInformationMessage("Tiller: there are no changes to review.");
      return;
    }
    const rows = await Promise.all(
      files.map(async (file) => {
        const now = this.#changes.of(file)?.op === "delete" ? await emptied(file) : file;
        return [file, file.with({ scheme: BEFORE, query: file.toString() }), now];
      }),
    );
    await vscode.commands.executeCommand("vscode.changes", "Changes by Tiller", rows);
  }
}

/** A file that is gone is shown as an empty one. */
async function emptied(file: vscode.Uri): Promise<vscode.Uri> {
  const isThere = await vscode.workspace.fs.stat(file).then(
    () => true,
    () => false,
  );
  return isThere ? file : file.with({ scheme: BEFORE, query: "untitled:gone" });
}

async function textOf(file: vscode.Uri): Promise<string> {
  try {
    return readDocument({ uri: file.toString() }).text;
  } catch {
    // It is not open: then the disk has it, or nobody.
  }
  try {
    return (await vscode.workspace.openTextDocument(file)).getText();
  } catch {
    return "";
  }
}
