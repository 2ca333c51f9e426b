// What the user said of this workspace in the editor, told to the server.

import * as vscode from "vscode";
import type { AgentPort } from "../agent/port.js";

const TOLD = "tiller.trustTold";

/**
 * Tells the server how the window stands. Yes is said once for each folder: the server trusts what is in it at that
 * moment, and asks by itself when something that could configure the agent has changed since. No is said each time.
 */
export async function tellTrust(port: AgentPort, memory: vscode.Memento): Promise<void> {
  const folders = (vscode.workspace.workspaceFolders ?? []).filter((one) => one.uri.scheme === "file");
  const trusted = vscode.workspace.isTrusted;
  const told = new Set(trusted ? memory.get<string[]>(TOLD, []) : []);
  const items = folders.map((one) => one.uri.toString()).filter((folder) => !told.has(folder));
  if (items.length > 0)
    await port.notify("agent/trust", { items: items.map((folder) => ({ folder, trusted })) });
  await memory.update(TOLD, trusted ? [...told, ...items] : []);
}
