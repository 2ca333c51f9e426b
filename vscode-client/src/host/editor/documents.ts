// What the server asks about documents: their text, and to save them.

import * as vscode from "vscode";
import type {
  DocumentsReadParams,
  DocumentsReadResult,
  DocumentsSaveParams,
  DocumentsSaveResult,
  SavedDocument,
  SaveItem,
} from "../../shared/wire.js";

/** Gives the document that the editor has open; undefined when it has none. */
export function openDocument(uri: string): vscode.TextDocument | undefined {
  const wanted = vscode.Uri.parse(uri, true).toString();
  return vscode.workspace.textDocuments.find((one) => !one.isClosed && one.uri.toString() === wanted);
}

export function readDocument({ uri }: DocumentsReadParams): DocumentsReadResult {
  const document = openDocument(uri);
  if (document === undefined) throw new Error(`${uri} is not open in the editor.`);
  const { version, languageId, isDirty } = document;
  return { text: document.getText(), version, dirty: isDirty, languageId };
}

export async function saveDocuments({ items }: DocumentsSaveParams): Promise<DocumentsSaveResult> {
  const results: SavedDocument[] = [];
  for (const item of items) results.push(await saveOne(item));
  return { results };
}

async function saveOne({ uri, version }: SaveItem): Promise<SavedDocument> {
  const document = openDocument(uri);
  if (document === undefined) return { uri, saved: false, why: "it is not open in the editor" };
  if (version !== undefined && document.version !== version)
    return { uri, saved: false, version: document.version, why: "it was changed meanwhile" };
  if (document.isUntitled) return { uri, saved: false, version: document.version, why: "it is no file yet" };
  const saved = !document.isDirty || (await document.save());
  return { uri, saved, version: document.version, ...(saved ? {} : { why: "the editor could not save it" }) };
}
