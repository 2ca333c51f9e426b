// Marks beside the lines that the agent changed and nobody has looked at.

import * as vscode from "vscode";
import type { Hunk } from "../../shared/wire.js";
import { editorWishes } from "../settings.js";
import type { Changes } from "./changes.js";
import { isDeletion, linesOf } from "./hunks.js";

const RULER = new vscode.ThemeColor("tiller.changeGutter");
const SHOWN_LINES = 30;
/** What a link in a hover may run; its other words are text of files. */
const LINKS = ["tiller.acceptHunk", "tiller.rejectHunk", "tiller.showDiff"];

/** A stroke at the right end of the gutter; pictures there know no colours of the theme. */
function bar(colour: string): vscode.Uri {
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" preserveAspectRatio="none"><rect x="11" y="0" width="3" height="16" fill="${colour}"/></svg>`;
  return vscode.Uri.parse(`data:image/svg+xml;base64,${Buffer.from(picture).toString("base64")}`);
}

export class Marks {
  readonly #changes: Changes;
  readonly #changed = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("tiller.changeBackground"),
    overviewRulerColor: RULER,
    overviewRulerLane: vscode.OverviewRulerLane.Left,
    gutterIconSize: "cover",
    dark: { gutterIconPath: bar("#3794ff") },
    light: { gutterIconPath: bar("#0078d4") },
  });
  readonly #removed = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    borderColor: RULER,
    borderStyle: "dashed",
    borderWidth: "2px 0 0 0",
    overviewRulerColor: RULER,
    overviewRulerLane: vscode.OverviewRulerLane.Left,
  });
  readonly #listening: { dispose(): void }[];

  constructor(changes: Changes) {
    this.#changes = changes;
    this.#listening = [
      changes.changed.listen(() => this.draw()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.draw()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("tiller.editor")) this.draw();
      }),
    ];
  }

  draw(): void {
    const wanted = editorWishes().gutter;
    for (const editor of vscode.window.visibleTextEditors) {
      const hunks = wanted ? (this.#changes.of(editor.document.uri)?.hunks ?? []) : [];
      editor.setDecorations(
        this.#changed,
        hunks.filter((one) => !isDeletion(one)).map((one) => mark(editor, one)),
      );
      editor.setDecorations(
        this.#removed,
        hunks.filter(isDeletion).map((one) => mark(editor, one)),
      );
    }
  }

  dispose(): void {
    for (const one of this.#listening) one.dispose();
    this.#changed.dispose();
    this.#removed.dispose();
  }
}

function mark(editor: vscode.TextEditor, hunk: Hunk): vscode.DecorationOptions {
  const { start, end } = linesOf(hunk);
  const range = editor.document.validateRange(new vscode.Range(start, 0, end - 1, Number.MAX_SAFE_INTEGER));
  return { range, hoverMessage: hover(editor, hunk) };
}

function hover(editor: vscode.TextEditor, hunk: Hunk): vscode.MarkdownString {
  const text = new vscode.MarkdownString(undefined, true);
  text.isTrusted = { enabledCommands: LINKS };
  const was = hunk.oldText.split("\n").slice(0, SHOWN_LINES).join("\n");
  if (was === "") text.appendMarkdown("Tiller added this.\n\n");
  else {
    text.appendMarkdown("Tiller changed this. Before:\n");
    text.appendCodeblock(was, editor.document.languageId);
  }
  const link = (title: string, command: string, argument: string) =>
    `[${title}](command:${command}?${encodeURIComponent(JSON.stringify([argument]))})`;
  const compare = link("Compare", "tiller.showDiff", editor.document.uri.toString());
  const keep = link("Keep", "tiller.acceptHunk", hunk.id);
  return text.appendMarkdown(`${keep} · ${link("Reject", "tiller.rejectHunk", hunk.id)} · ${compare}`);
}
