// What a task changed in its worktree, in the diff editor: the base commit beside the worktree.

import * as vscode from "vscode";
import type { ChangeSet, FileChange } from "../../shared/wire.js";
import type { AgentPort } from "../agent/port.js";
import { repositoryOf } from "./git.js";
import { textAfter } from "./hunks.js";

export const TASK = "tiller-task";

/** Names one side of the diff of a file, in the query of its URI. */
interface Side {
  session: string;
  task: string;
  /** URI of the file in the workspace. */
  file: string;
  side: "base" | "worktree";
}

export interface Shown {
  /** The task as people know it. */
  name: string;
  file?: string | undefined;
  line0?: number | undefined;
}

export class TaskDiffs implements vscode.TextDocumentContentProvider {
  readonly #port: AgentPort;
  readonly #session: () => string | undefined;
  readonly #renewed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#renewed.event;
  /** What was listed last, by session and task. */
  readonly #listed = new Map<string, Promise<ChangeSet>>();

  constructor(port: AgentPort, session: () => string | undefined) {
    this.#port = port;
    this.#session = session;
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const { session, task, file, side } = JSON.parse(uri.query) as Side;
    const set = await (this.#listed.get(`${session} ${task}`) ?? this.#list(session, task));
    const change = set.files.find((one) => one.uri === file);
    if (change === undefined || (side === "worktree" && change.op === "delete")) return "";
    const base = change.op === "add" ? "" : await textOfBase(change, set.base);
    return side === "base" ? base : textAfter(base, change.hunks);
  }

  /** Opens the diff of one file, at a line of the worktree counted from 0; without a file those of all. */
  async show(task: string, { name, file, line0 = 0 }: Shown): Promise<void> {
    const session = this.#session();
    if (session === undefined) return;
    const set = await this.#list(session, task);
    const files = set.files.filter((one) => !one.binary && (file === undefined || one.uri === file));
    if (files.length === 0) {
      void vscode.window.showInformationMessage("Tiller: the task changed no text file in its worktree.");
      return;
    }
    const rows = files.map((one) => [
      vscode.Uri.parse(one.uri, true),
      sideOf({ session, task, file: one.uri, side: "base" }),
      sideOf({ session, task, file: one.uri, side: "worktree" }),
    ]);
    for (const [, base, worktree] of rows)
      for (const one of [base, worktree]) if (one) this.#renewed.fire(one);
    const [first] = rows;
    if (file === undefined || first === undefined) {
      await vscode.commands.executeCommand("vscode.changes", `${name}: base ↔ worktree`, rows);
      return;
    }
    const [target, base, worktree] = first;
    const fileName = target?.path.split("/").at(-1) ?? "";
    const selection = new vscode.Range(line0, 0, line0, 0);
    await vscode.commands.executeCommand("vscode.diff", base, worktree, `${fileName}: base ↔ ${name}`, {
      selection,
    });
  }

  #list(session: string, task: string): Promise<ChangeSet> {
    const listed = this.#port.request("agent/task/changes", { session, id: task });
    this.#listed.set(`${session} ${task}`, listed);
    listed.catch(() => this.#listed.delete(`${session} ${task}`));
    return listed;
  }
}

function sideOf(side: Side): vscode.Uri {
  return vscode.Uri.parse(side.file, true).with({ scheme: TASK, query: JSON.stringify(side) });
}

async function textOfBase(change: FileChange, base: string): Promise<string> {
  const file = vscode.Uri.parse(change.oldUri ?? change.uri, true);
  return (await repositoryOf(file)).show(base, file.fsPath);
}
