// Does what the panel asks for. Each message is taken for what it may be, not for what it says it is.

import * as vscode from "vscode";
import { isPanelCommand } from "../../shared/commands.js";
import type { Answer, Found, ToHost, ToPanel } from "../../shared/messages.js";
import type { Block, Range } from "../../shared/wire.js";
import type { TaskDiffs } from "../editor/task-diffs.js";
import { noticeLine } from "../ui/status-text.js";
import { openCommandTerminal } from "./command-terminal.js";
import { editorRange, findFiles, findSymbols } from "./find-items.js";
import { gather } from "./gather.js";
import type { PlanDocuments } from "./plan-documents.js";
import { failure, type PanelRequests } from "./requests.js";
import type { TaskLinks } from "./task-links.js";
import type { Terminals } from "./terminals.js";

export interface HearParts {
  /** The page that speaks. */
  page: object;
  tasks: TaskLinks;
  taskDiffs: TaskDiffs;
  requests: PanelRequests;
  post: (message: ToPanel) => void;
  terminals: Terminals;
  plans: PlanDocuments;
  /** Takes the name of the session that is shown. */
  titled: (title: string) => void;
  /** Sends the session as it stands. */
  picture: () => void;
  log: vscode.LogOutputChannel;
}

const SHOWN_SCHEMES = new Set(["file", "untitled", "vscode-remote", "tiller-before"]);
const LINK_SCHEMES = new Set(["http", "https"]);

/** Takes one message of the panel; what goes wrong is told in the answer or by a message of the editor. */
export async function hear(message: ToHost, parts: HearParts): Promise<void> {
  try {
    await act(message, parts);
  } catch (thrown) {
    const { message: why } = failure(thrown);
    parts.log.warn(`${message.type}: ${why}`);
    void vscode.window.showWarningMessage(`Tiller: ${why}`);
  }
}

async function act(message: ToHost, parts: HearParts): Promise<void> {
  switch (message.type) {
    case "ready":
      return parts.picture();
    case "request": {
      const reply = await parts.requests.answer(message);
      return parts.post({ type: "answer", id: message.id, ...reply });
    }
    case "findFiles":
      return parts.post(await found(message.id, findFiles(message.query)));
    case "findSymbols":
      return parts.post(await found(message.id, findSymbols(message.query)));
    case "gather":
      return parts.post(await gathered(message.id, gather(message.what, parts.terminals)));
    case "readPage":
      return parts.post(await gathered(message.id, parts.requests.page(String(message.url))));
    case "command":
      if (isPanelCommand(message.command))
        await vscode.commands.executeCommand(message.command, ...(message.args ?? []));
      return;
    case "editPlan":
      return parts.plans.edit(String(message.sha256), String(message.markdown));
    case "editedPlan":
      return parts.post({
        type: "answer",
        id: message.id,
        result: { text: await parts.plans.text(String(message.sha256)) },
      });
    case "followTask":
      return followTask(message, parts);
    case "diffTask":
      return parts.taskDiffs.show(String(message.task), {
        name: noticeLine(String(message.name)),
        file: message.uri,
        line0: message.line0,
      });
    case "notify":
    case "visit":
      // The editor shows what waits in its own ways, and has none of the places of the browser.
      return;
    case "titled":
      return parts.titled(typeof message.title === "string" ? noticeLine(message.title) : "");
    case "trust":
      await vscode.commands.executeCommand("tiller.manageTrust");
      return;
    default:
      return show(message);
  }
}

function followTask(
  { session, isRunning }: Extract<ToHost, { type: "followTask" }>,
  { page, tasks, post }: HearParts,
): void {
  if (typeof session === "string") tasks.follow(page, session, { isRunning: isRunning === true }, post);
  else tasks.leave(page);
}

type Shown = Extract<ToHost, { type: "open" | "openLink" | "openTerminal" | "diff" | "copy" | "insert" }>;

async function show(message: Shown): Promise<void> {
  switch (message.type) {
    case "open":
      return open(message.uri, message.range);
    case "openLink": {
      const uri = vscode.Uri.parse(message.url, true);
      if (LINK_SCHEMES.has(uri.scheme)) await vscode.env.openExternal(uri);
      return;
    }
    case "openTerminal":
      return openCommandTerminal(String(message.command), String(message.folder));
    case "diff":
      await vscode.commands.executeCommand(
        "tiller.showDiff",
        vscode.Uri.parse(message.uri, true),
        message.hunk,
      );
      return;
    case "copy":
      return vscode.env.clipboard.writeText(message.text);
    case "insert":
      return insert(message.text);
  }
}

async function gathered(id: number, blocks: Promise<Block[]>): Promise<Answer> {
  return blocks.then(
    (all) => ({ type: "answer", id, result: { blocks: all } }),
    (thrown: unknown) => ({ type: "answer", id, error: failure(thrown) }),
  );
}

async function found(id: number, items: Promise<Found[]>): Promise<Answer> {
  return items.then(
    (all) => ({ type: "answer", id, result: { items: all } }),
    (thrown: unknown) => ({ type: "answer", id, error: failure(thrown) }),
  );
}

async function open(address: string, range: Range | undefined): Promise<void> {
  const uri = vscode.Uri.parse(address, true);
  if (!SHOWN_SCHEMES.has(uri.scheme)) return;
  const selection = range === undefined ? {} : { selection: editorRange(range) };
  await vscode.commands.executeCommand("vscode.open", uri, { preview: true, ...selection });
}

async function insert(text: string): Promise<void> {
  const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0];
  if (editor === undefined) {
    const document = await vscode.workspace.openTextDocument({ content: text });
    await vscode.window.showTextDocument(document);
    return;
  }
  await vscode.window.showTextDocument(editor.document, {
    viewColumn: editor.viewColumn ?? vscode.ViewColumn.Active,
  });
  await editor.edit((edit) => {
    for (const selection of editor.selections) edit.replace(selection, text);
  });
}
