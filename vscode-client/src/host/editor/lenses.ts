// Keep and Reject, above each change that nobody has looked at.

import * as vscode from "vscode";
import type { Hunk } from "../../shared/wire.js";
import { editorWishes } from "../settings.js";
import type { Changes } from "./changes.js";
import { linesOf } from "./hunks.js";

/** So much of a replaced line stands above the change. */
const OLD_CHARS = 80;

export class Lenses implements vscode.CodeLensProvider {
  readonly #changes: Changes;
  readonly #renewed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.#renewed.event;

  constructor(changes: Changes) {
    this.#changes = changes;
    changes.changed.listen(() => this.#renewed.fire());
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const hunks = editorWishes().lenses ? (this.#changes.of(document.uri)?.hunks ?? []) : [];
    const lenses = hunks.flatMap((hunk, place) => ofHunk(document, hunk, place + 1, hunks.length));
    return hunks.length > 1 ? [...lenses, ...ofFile(document, hunks)] : lenses;
  }
}

function ofHunk(document: vscode.TextDocument, hunk: Hunk, number: number, count: number): vscode.CodeLens[] {
  const line = Math.min(linesOf(hunk).start, document.lineCount - 1);
  const range = new vscode.Range(line, 0, line, 0);
  const which = count > 1 ? ` change ${number} of ${count}` : "";
  return [
    lens(range, `$(check) Keep${which}`, "tiller.acceptHunk", [hunk.id]),
    lens(range, "$(discard) Reject", "tiller.rejectHunk", [hunk.id]),
    lens(range, compareTitle(hunk), "tiller.showDiff", [document.uri.toString(), hunk.id]),
  ];
}

/** Shows what stood here before: the first line that was replaced, and how many there were. */
function compareTitle({ oldText }: Hunk): string {
  const lines = oldText.replace(/\r?\n$/, "").split(/\r?\n/);
  const first = lines.find((one) => one.trim() !== "")?.trim();
  if (first === undefined) return "$(diff) Compare";
  const shown = first.length > OLD_CHARS ? `${first.slice(0, OLD_CHARS)}…` : first;
  const more = lines.length > 1 ? ` (+${lines.length - 1})` : "";
  // A sign and a bracket would be taken for an icon.
  return `− ${shown.replaceAll("$(", "$ (")}${more}`;
}

function ofFile(document: vscode.TextDocument, hunks: readonly Hunk[]): vscode.CodeLens[] {
  const top = new vscode.Range(0, 0, 0, 0);
  const uri = document.uri.toString();
  return [
    lens(top, `$(check-all) Keep all ${hunks.length} changes`, "tiller.acceptFile", [uri]),
    lens(top, "$(discard) Reject all", "tiller.rejectFile", [uri]),
  ];
}

function lens(range: vscode.Range, title: string, command: string, words: string[]): vscode.CodeLens {
  return new vscode.CodeLens(range, { title, command, arguments: words });
}
