// Where the editor starts and ends the extension.

import * as vscode from "vscode";
import { VIEW } from "./panel/panel-view.js";
import { registerCommands } from "./ui/commands.js";
import { joinParts, makeWindow } from "./window.js";

export function activate(context: vscode.ExtensionContext): void {
  const window = makeWindow(context);
  context.subscriptions.push(
    vscode.window.registerWebviewViewProvider(VIEW, window.panel, {
      webviewOptions: { retainContextWhenHidden: true },
    }),
    ...registerCommands(window),
  );
  joinParts(window);
  void window.daemon.start();
}
