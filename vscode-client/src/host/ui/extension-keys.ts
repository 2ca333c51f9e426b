// Keys of Tiller's extensions: pressed from a list, or by a key that the user binds to the command with its name.

import * as vscode from "vscode";
import { ofSession, type Window } from "../window.js";

/** Presses a key of an extension; without a name, the user chooses one of those that are offered now. */
export async function pressExtensionKey(window: Window, name?: unknown): Promise<void> {
  const key = typeof name === "string" ? name : await chosenKey(window);
  if (key !== undefined) await window.daemon.request("agent/extension/press", { ...ofSession(window), key });
}

async function chosenKey(window: Window): Promise<string | undefined> {
  const { keys } = await window.daemon.request("agent/extension/list", ofSession(window));
  if (keys.length === 0) {
    void vscode.window.showInformationMessage("Tiller: no extension offers a key.");
    return undefined;
  }
  const rows = keys.map((one) => ({
    label: one.description || one.key,
    description: one.key,
    detail: one.extension,
    key: one.key,
  }));
  const options = { title: "Keys of Extensions", matchOnDescription: true, matchOnDetail: true };
  return (await vscode.window.showQuickPick(rows, options))?.key;
}
