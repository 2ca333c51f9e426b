// The problems that the editor shows, with the version of the text that they are about.

import * as vscode from "vscode";
import type { DiagnosticsItem, DiagnosticsParams, DiagnosticsResult } from "../../shared/wire.js";
import { plainDiagnostic } from "../panel/selection.js";
import { openDocument } from "./documents.js";

export class Problems {
  /** By URI: the version that a document had when its problems were last told. */
  readonly #told = new Map<string, number>();
  readonly #waiting = new Set<() => void>();
  readonly #listening: vscode.Disposable[];

  constructor() {
    this.#listening = [
      vscode.languages.onDidChangeDiagnostics(({ uris }) => this.#note(uris)),
      vscode.workspace.onDidCloseTextDocument((one) => this.#told.delete(one.uri.toString())),
    ];
  }

  /** Waits until the problems are as new as is asked, but no longer than is asked. */
  async answer({ uris, atLeast = {}, timeoutMs }: DiagnosticsParams): Promise<DiagnosticsResult> {
    const wanted =
      uris ??
      vscode.languages.getDiagnostics().flatMap(([uri, all]) => (all.length > 0 ? [uri.toString()] : []));
    const isFresh = (uri: string) => (this.#told.get(key(uri)) ?? -1) >= (atLeast[uri] ?? 0);
    await this.#until(() => wanted.every(isFresh), timeoutMs);
    return { items: wanted.map((uri) => item(uri, isFresh(uri))) };
  }

  dispose(): void {
    for (const one of this.#listening) one.dispose();
    for (const look of [...this.#waiting]) look();
  }

  #note(uris: readonly vscode.Uri[]): void {
    for (const uri of uris) {
      const document = openDocument(uri.toString());
      this.#told.set(uri.toString(), document?.version ?? 0);
    }
    for (const look of [...this.#waiting]) look();
  }

  #until(isDone: () => boolean, timeoutMs: number): Promise<void> {
    if (isDone()) return Promise.resolve();
    return new Promise((done) => {
      const end = () => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        done();
      };
      const look = () => {
        if (isDone()) end();
      };
      const timer = setTimeout(end, timeoutMs);
      this.#waiting.add(look);
    });
  }
}

function key(uri: string): string {
  return vscode.Uri.parse(uri, true).toString();
}

function item(uri: string, fresh: boolean): DiagnosticsItem {
  const version = openDocument(uri)?.version;
  const diagnostics = vscode.languages.getDiagnostics(vscode.Uri.parse(uri, true)).map(plainDiagnostic);
  return { uri, fresh, diagnostics, ...(version === undefined ? {} : { version }) };
}
