// "Fix with Tiller" beside the editor's own quick fixes.

import * as vscode from "vscode";

const OWN_SOURCE = "tiller";

export class QuickFixes implements vscode.CodeActionProvider {
  static readonly kinds = [vscode.CodeActionKind.QuickFix, vscode.CodeActionKind.RefactorRewrite];

  provideCodeActions(
    document: vscode.TextDocument,
    range: vscode.Range,
    context: vscode.CodeActionContext,
  ): vscode.CodeAction[] {
    const problems = context.diagnostics.filter((one) => one.source !== OWN_SOURCE);
    const actions: vscode.CodeAction[] = [];
    if (problems.length > 0) {
      const title = problems.length === 1 ? "Fix with Tiller" : `Fix ${problems.length} problems with Tiller`;
      const fix = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
      fix.diagnostics = problems;
      fix.command = { title, command: "tiller.fix", arguments: [document.uri, problems] };
      actions.push(fix);
    }
    if (!range.isEmpty) {
      const title = "Ask Tiller about this";
      const ask = new vscode.CodeAction(title, vscode.CodeActionKind.RefactorRewrite);
      ask.command = { title, command: "tiller.askSelection" };
      actions.push(ask);
    }
    return actions;
  }
}
