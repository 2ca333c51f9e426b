// Tells the server what the user looks at, when it changes.

import * as vscode from "vscode";
import type { EditorContext } from "../../shared/wire.js";
import type { AgentPort } from "../agent/port.js";
import { plainRange } from "../panel/find-items.js";
import { Signal } from "../signal.js";

/** Not more often than the server wants to hear it. */
const PAUSE_MS = 150;
const SCHEMES = new Set(["file", "untitled"]);

export class Attention {
  /** Fires when it was looked at anew. */
  readonly changed = new Signal<EditorContext>();
  readonly #port: AgentPort;
  readonly #listening: vscode.Disposable[];
  #timer: NodeJS.Timeout | undefined;
  #told = "";

  constructor(port: AgentPort) {
    this.#port = port;
    const look = () => this.#soon();
    const { window, workspace } = vscode;
    this.#listening = [
      window.onDidChangeActiveTextEditor(look),
      window.onDidChangeTextEditorSelection(look),
      window.onDidChangeTextEditorVisibleRanges(look),
      window.onDidChangeWindowState(look),
      window.tabGroups.onDidChangeTabs(look),
      workspace.onDidChangeTextDocument(look),
      workspace.onDidSaveTextDocument(look),
    ];
  }

  /** Tells it anew, to a server that has just begun to serve. */
  again(): void {
    this.#told = "";
    this.#soon();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const one of this.#listening) one.dispose();
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      // Of several windows with one file the one that was looked at last has it: others keep still.
      if (vscode.window.state.focused || this.#told === "") this.#tell(editorContext());
    }, PAUSE_MS);
  }

  #tell(context: EditorContext): void {
    const said = JSON.stringify(context);
    if (said === this.#told) return;
    this.#told = said;
    this.changed.fire(context);
    // Nobody waits for it: a server that has just gone is told by the next one's start.
    this.#port.notify("agent/editorContext", context).catch(() => undefined);
  }
}

export function editorContext(): EditorContext {
  const open = vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .flatMap(({ input }) =>
      input instanceof vscode.TabInputText && SCHEMES.has(input.uri.scheme) ? [input.uri] : [],
    )
    .map((uri) => uri.toString());
  const dirty = vscode.workspace.textDocuments
    .filter((one) => one.isDirty && SCHEMES.has(one.uri.scheme))
    .map((one) => one.uri.toString());
  const editor = vscode.window.activeTextEditor;
  const context: EditorContext = { open: [...new Set(open)], dirty };
  if (editor === undefined || !SCHEMES.has(editor.document.uri.scheme)) return context;
  const { document, selections, visibleRanges } = editor;
  const focus = {
    uri: document.uri.toString(),
    version: document.version,
    selections: selections.map(plainRange),
    visible: visibleRanges.map(plainRange),
  };
  return { ...context, focus };
}
