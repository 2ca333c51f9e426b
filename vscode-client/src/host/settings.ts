// What the user set: for the editor's side, and for the server.

import * as vscode from "vscode";

const SECTION = "tiller";
/** Concern the extension alone; the server knows no such settings. */
const OWN = new Set(["server", "panel", "editor", "notifications"]);

/** What is set under `tiller.editor`. */
export interface EditorWishes {
  lenses: boolean;
  gutter: boolean;
  saveWithRun: boolean;
}

export function editorWishes(): EditorWishes {
  const said = vscode.workspace.getConfiguration(`${SECTION}.editor`);
  return {
    lenses: said.get("lenses", true),
    gutter: said.get("gutter", true),
    saveWithRun: said.get("saveAppliedEdits", true),
  };
}

export type Notify = "always" | "whenHidden" | "never";

export function notifications(): Notify {
  return vscode.workspace.getConfiguration(SECTION).get<Notify>("notifications", "whenHidden");
}

/** What the server is told of: its own keys, as in its configuration file. Null counts as not said. */
export function serverSettings(): Record<string, unknown> {
  const said = vscode.workspace.getConfiguration().get<Record<string, unknown>>(SECTION) ?? {};
  return Object.fromEntries(Object.entries(said).filter(([name]) => !OWN.has(name)));
}
