// The item in the status bar, and what keys and menus may depend on.

import * as vscode from "vscode";
import type { HostState } from "../../shared/messages.js";
import type { Overview } from "../agent/overview.js";
import { statusText } from "./status-text.js";

const COLOURS = {
  plain: undefined,
  warning: new vscode.ThemeColor("statusBarItem.warningBackground"),
  error: new vscode.ThemeColor("statusBarItem.errorBackground"),
};

export class Status {
  readonly #item: vscode.StatusBarItem;
  readonly #told = new Map<string, boolean>();

  constructor() {
    this.#item = vscode.window.createStatusBarItem("tiller.status", vscode.StatusBarAlignment.Right, 90);
    this.#item.name = "Tiller";
    this.#item.command = "tiller.open";
    this.show({ ready: false }, undefined, []);
    this.#item.show();
  }

  show(host: HostState, overview: Overview | undefined, others: readonly Overview[]): void {
    const { text, tooltip, label, colour } = statusText(host, overview, others);
    this.#item.text = text;
    this.#item.tooltip = tooltip;
    this.#item.accessibilityInformation = { label, role: "button" };
    this.#item.backgroundColor = COLOURS[colour];
    this.#tell("tiller.ready", host.ready);
    this.#tell("tiller.running", overview?.run !== undefined);
    this.#tell("tiller.hasModel", overview?.model != null);
    if (overview?.run !== undefined) this.#tell("tiller.prompted", true);
    this.#tell("tiller.asking", (overview?.pending.length ?? 0) > 0);
    const all = overview === undefined ? others : [overview, ...others];
    this.#tell(
      "tiller.hasChanges",
      all.some((one) => one.unreviewed > 0),
    );
  }

  dispose(): void {
    this.#item.dispose();
  }

  #tell(key: string, value: boolean): void {
    if (this.#told.get(key) === value) return;
    this.#told.set(key, value);
    void vscode.commands.executeCommand("setContext", key, value);
  }
}
