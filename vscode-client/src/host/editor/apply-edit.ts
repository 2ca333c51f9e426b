// Applies an edit of the agent: only to the text that it was made for, as one step of undo in each document.

import { createHash } from "node:crypto";
import * as vscode from "vscode";
import type { DocumentPrecondition, EditedDocument, EditRequest, EditResult } from "../../shared/wire.js";
import { editorRange } from "../panel/find-items.js";
import { editorWishes } from "../settings.js";
import { openDocument } from "./documents.js";

interface LspEdit {
  range: Parameters<typeof editorRange>[0];
  newText: string;
}

interface DocumentChange {
  textDocument: { uri: string };
  edits: LspEdit[];
}

interface Part {
  uri: string;
  document: vscode.TextDocument;
  edits: vscode.TextEdit[];
  wasDirty: boolean;
}

/** Applies what can be applied and tells of each document; nothing is thrown. */
export async function applyEdit(request: EditRequest): Promise<EditResult> {
  const changes = changesOf(request.workspaceEdit);
  const results = new Map<string, EditedDocument>();
  const parts: Part[] = [];
  for (const { textDocument, edits } of changes) {
    const { uri } = textDocument;
    const pre = request.pre.find((one) => one.uri === uri);
    const part = prepare(uri, edits, pre);
    if ("status" in part) results.set(uri, part);
    else parts.push(part);
  }
  if (parts.length > 0) for (const one of await apply(parts, request)) results.set(one.uri, one);
  return { documents: changes.flatMap(({ textDocument }) => results.get(textDocument.uri) ?? []) };
}

function changesOf(edit: EditRequest["workspaceEdit"]): DocumentChange[] {
  const listed = edit["documentChanges"];
  return Array.isArray(listed) ? (listed as unknown as DocumentChange[]) : [];
}

function prepare(
  uri: string,
  edits: LspEdit[],
  pre: DocumentPrecondition | undefined,
): Part | EditedDocument {
  const document = openDocument(uri);
  if (document === undefined) return { uri, status: "failed", why: "it is not open in the editor" };
  const { version, isDirty } = document;
  const stale: EditedDocument = { uri, status: "stale", version, why: "the text was changed meanwhile" };
  if (pre?.version !== undefined && pre.version !== version) return stale;
  if (pre?.sha256 !== undefined && pre.sha256 !== hashOf(document.getText())) return stale;
  const made = edits.map((one) => vscode.TextEdit.replace(editorRange(one.range), one.newText));
  return { uri, document, edits: made, wasDirty: isDirty };
}

async function apply(parts: Part[], request: EditRequest): Promise<EditedDocument[]> {
  const edit = new vscode.WorkspaceEdit();
  for (const { document, edits } of parts) edit.set(document.uri, edits);
  const versions = new Map(parts.map(({ document }) => [document, document.version]));
  // The editor itself looks at the versions again, at the moment when it changes the text.
  const applied = await vscode.workspace.applyEdit(edit);
  const saves = request.save === "ifWasClean" && editorWishes().saveWithRun;
  return Promise.all(parts.map((part) => (applied ? landed(part, saves) : refused(part, versions))));
}

async function landed({ uri, document, wasDirty }: Part, saves: boolean): Promise<EditedDocument> {
  const saved = saves && !wasDirty && !document.isUntitled && (await document.save());
  return { uri, status: "applied", version: document.version, wasDirty, saved };
}

function refused({ uri, document }: Part, versions: Map<vscode.TextDocument, number>): EditedDocument {
  const { version } = document;
  if (versions.get(document) !== version)
    return { uri, status: "stale", version, why: "the text was changed meanwhile" };
  return { uri, status: "refused", version, why: "the editor did not take the edit; is the file read-only?" };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}
