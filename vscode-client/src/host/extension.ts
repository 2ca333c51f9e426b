// Where the editor starts and ends the extension.

import type * as vscode from "vscode";
import { registerCommands } from "./ui/commands.js";
import { joinParts, makeWindow } from "./window.js";

export function activate(context: vscode.ExtensionContext): void {
  const window = makeWindow(context);
  context.subscriptions.push(...window.panel.register(), ...registerCommands(window));
  joinParts(window);
  void window.daemon.start();
}
