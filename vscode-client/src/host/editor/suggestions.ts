// What the findings of a review suggest: a quick fix of the editor, and the button of a card in the panel.

import * as vscode from "vscode";
import { type CodeAction, type Command, type LanguageClient, State } from "vscode-languageclient/node";
import type { Range } from "../../shared/wire.js";
import { editorRange } from "../panel/find-items.js";

const SOURCE = "tiller review";

/** The edits are the server's, made for the text as it is now. What else it offers the extension has as commands of its own. */
export class Suggestions implements vscode.CodeActionProvider {
  static readonly kind = vscode.CodeActionKind.QuickFix.append("tiller");
  #client: LanguageClient | undefined;

  /** Asks this server from now on. */
  follow(client: LanguageClient): void {
    this.#client = client;
  }

  async provideCodeActions(
    document: vscode.TextDocument,
    range: vscode.Range,
    _context: vscode.CodeActionContext,
    token: vscode.CancellationToken,
  ): Promise<vscode.CodeAction[]> {
    return touchesFinding(document.uri, range) ? this.#asked(document, range, token) : [];
  }

  /** Makes the edit that a finding suggests, wherever its lines are now. Gives whether it could be made; if not, it is said. */
  async apply(address: string, range: Range, message: string): Promise<boolean> {
    const uri = vscode.Uri.parse(address, true);
    const document = await vscode.workspace.openTextDocument(uri);
    const editor = await vscode.window.showTextDocument(document, { preview: true, preserveFocus: true });
    const told = vscode.languages.getDiagnostics(uri);
    const place =
      told.find((one) => one.source === SOURCE && one.message === message)?.range ?? editorRange(range);
    editor.revealRange(place, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    const whole = new vscode.CancellationTokenSource();
    const actions = await this.#asked(document, place, whole.token);
    whole.dispose();
    const fits = ({ diagnostics }: vscode.CodeAction) => diagnostics?.some((one) => one.message === message);
    const edit = actions.find(fits)?.edit;
    if (edit !== undefined && (await vscode.workspace.applyEdit(edit))) return true;
    const title = message.split("\n", 1)[0] ?? message;
    void vscode.window.showInformationMessage(
      `Tiller: nothing was changed: the lines of \u201c${title}\u201d are others by now.`,
    );
    return false;
  }

  /** Not by way of the editor: what that gives does not say which finding it is for. */
  async #asked(
    document: vscode.TextDocument,
    range: vscode.Range,
    token: vscode.CancellationToken,
  ): Promise<vscode.CodeAction[]> {
    const client = this.#client;
    if (client?.state !== State.Running) return [];
    const { code2ProtocolConverter: out, protocol2CodeConverter: back } = client;
    const said = await client.sendRequest<(Command | CodeAction)[] | null>(
      "textDocument/codeAction",
      {
        textDocument: out.asTextDocumentIdentifier(document),
        range: out.asRange(range),
        context: { diagnostics: [], only: [Suggestions.kind.value] },
      },
      token,
    );
    const actions = await back.asCodeActionResult(said ?? [], token);
    return actions.filter(
      (one): one is vscode.CodeAction => one instanceof vscode.CodeAction && one.edit !== undefined,
    );
  }
}

function touchesFinding(uri: vscode.Uri, range: vscode.Range): boolean {
  return vscode.languages
    .getDiagnostics(uri)
    .some((one) => one.source === SOURCE && one.range.intersection(range) !== undefined);
}
