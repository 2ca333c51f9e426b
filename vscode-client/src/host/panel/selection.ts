// What the user has selected, as a part of a prompt.

import * as vscode from "vscode";
import type { Block, Diagnostic } from "../../shared/wire.js";
import type { AgentPort } from "../agent/port.js";
import { pdfBlock } from "./attached-pdf.js";
import { plainRange } from "./find-items.js";

const SEVERITIES: Record<vscode.DiagnosticSeverity, number> = {
  [vscode.DiagnosticSeverity.Error]: 1,
  [vscode.DiagnosticSeverity.Warning]: 2,
  [vscode.DiagnosticSeverity.Information]: 3,
  [vscode.DiagnosticSeverity.Hint]: 4,
};

/** Gives each selection that is not empty; with none, nothing. */
export function selectionBlocks(editor = vscode.window.activeTextEditor): Block[] {
  if (editor === undefined) return [];
  const { document } = editor;
  return editor.selections
    .filter((one) => !one.isEmpty)
    .map((one) => ({
      type: "selection",
      uri: document.uri.toString(),
      version: document.version,
      range: plainRange(one),
      text: document.getText(one),
    }));
}

/** Gives a file as a part of a prompt: its name, and its text when it is nowhere but in the editor. */
export function fileBlock(uri: vscode.Uri, range?: vscode.Range): Block {
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
  return {
    type: "resource",
    uri: uri.toString(),
    ...(document?.isUntitled ? { text: document.getText() } : {}),
    ...(range === undefined ? {} : { range: plainRange(range) }),
  };
}

/** Gives a PDF with its pages, which no tool of the agent reads; any other file as `fileBlock` does. */
export async function attachedBlock(uri: vscode.Uri, agent: Pick<AgentPort, "request">): Promise<Block> {
  if (!/\.pdf$/i.test(uri.path)) return fileBlock(uri);
  const { fs } = vscode.workspace;
  const file = {
    uri: uri.toString(),
    name: uri.path.slice(uri.path.lastIndexOf("/") + 1),
    isLocal: uri.scheme === "file",
    size: async () => (await fs.stat(uri)).size,
    read: async () => fs.readFile(uri),
  };
  return pdfBlock(file, agent);
}

export function diagnosticsBlock(uri: vscode.Uri, items: readonly vscode.Diagnostic[]): Block {
  return { type: "diagnostics", uri: uri.toString(), items: items.map(plainDiagnostic) };
}

export function plainDiagnostic(one: vscode.Diagnostic): Diagnostic {
  const code = typeof one.code === "object" ? one.code.value : one.code;
  return {
    range: plainRange(one.range),
    message: one.message,
    severity: SEVERITIES[one.severity],
    ...(code === undefined ? {} : { code }),
    ...(one.source === undefined ? {} : { source: one.source }),
  };
}
