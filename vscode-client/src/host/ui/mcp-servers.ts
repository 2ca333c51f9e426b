// The MCP servers of this folder: a list to look at, test, switch, add to and remove from. The program changes the files.

import { basename } from "node:path";
import * as vscode from "vscode";
import { asAgentError } from "../agent/port.js";
import type { RunOptions } from "../server/programs.js";
import type { Window } from "../window.js";
import {
  failureText,
  type McpServer,
  type McpTest,
  type McpTools,
  plain,
  serverText,
  toolCount,
  toolTexts,
} from "./mcp-list.js";
import { runTiller } from "./sign-in.js";

/** What is done with a row that was chosen; "again" shows the list anew. */
type Act = () => Promise<unknown>;
type RowButton = vscode.QuickInputButton & { act: Act };
type Row = vscode.QuickPickItem & { act?: Act; server?: string };

/** What stays while the list is shown anew. */
interface ListState {
  /** Results of the tests, by the file and name of the server. */
  tests: Map<string, McpTest>;
  /** The server of the row that was used last. */
  active?: string;
}

/** Shows the servers until one is opened or the list is left; it is shown anew after each change. */
export async function showMcpServers(window: Window): Promise<void> {
  const state: ListState = { tests: new Map() };
  for (let act = await chosen(window, state); act !== undefined; act = await chosen(window, state))
    if ((await act()) !== "again") return;
}

async function chosen(window: Window, state: ListState): Promise<Act | undefined> {
  const pick = vscode.window.createQuickPick<Row>();
  pick.title = "MCP Servers";
  pick.placeholder = "Servers whose tools the agent can use";
  pick.matchOnDescription = true;
  pick.busy = true;
  const done = new Promise<Act | undefined>((resolve) => {
    pick.onDidAccept(() => resolve(pick.selectedItems[0]?.act));
    pick.onDidTriggerItemButton(({ button }) => resolve((button as RowButton).act));
    pick.onDidHide(() => resolve(undefined));
  });
  pick.show();
  try {
    pick.items = await rows(window, state);
    const active = pick.items.find(({ server }) => server !== undefined && server === state.active);
    // Else the first row stays the active one; an empty list of active rows would leave none.
    if (active !== undefined) pick.activeItems = [active];
    pick.busy = false;
    return await done;
  } finally {
    pick.dispose();
  }
}

async function rows(window: Window, state: ListState): Promise<Row[]> {
  const listed = await mcp(window, ["list", "--json"]);
  const { servers, problems } = JSON.parse(listed) as { servers: McpServer[]; problems: string[] };
  const separator = (label: string): Row => ({ label, kind: vscode.QuickPickItemKind.Separator });
  return [
    { label: "$(add) Add a server…", act: () => add(window) },
    ...(servers.length > 0 ? [separator("Servers")] : []),
    ...servers.map((server) => row(window, server, state)),
    ...(problems.length > 0 ? [separator("Problems")] : []),
    ...problems.map((problem): Row => ({ label: `$(warning) ${plain(problem)}` })),
  ];
}

function row(window: Window, server: McpServer, state: ListState): Row {
  return {
    ...serverText(server, state.tests.get(keyOf(server))),
    act: async () => vscode.window.showTextDocument(vscode.Uri.file(server.file)),
    server: keyOf(server),
    buttons: buttons(window, server, state),
  };
}

function buttons(window: Window, server: McpServer, state: ListState): RowButton[] {
  const button = (icon: string, tooltip: string, run: Act): RowButton => ({
    iconPath: new vscode.ThemeIcon(icon),
    tooltip,
    act: () => {
      state.active = keyOf(server);
      return run();
    },
  });
  const tested = server.enabled ? [button("beaker", "Test", () => test(window, server, state))] : [];
  // A file that other agents read too is changed by hand.
  if (server.file.endsWith(".mcp.json")) return tested;
  return [
    ...tested,
    server.enabled
      ? button("circle-slash", "Switch Off", () => change(window, "disable", server))
      : button("pass", "Switch On", () => change(window, "enable", server)),
    button("trash", "Remove", () => remove(window, server)),
  ];
}

function keyOf({ file, name }: McpServer): string {
  return `${file}#${name}`;
}

async function test(window: Window, server: McpServer, state: ListState): Promise<unknown> {
  const result = await testResult(window, server.name);
  if (result === undefined) return "again";
  state.tests.set(keyOf(server), result);
  if ("failure" in result) {
    const message = `The MCP server ${server.name} does not work.`;
    const open = `Open ${basename(server.file)}`;
    const options = { modal: true, detail: result.failure };
    const answer = await vscode.window.showWarningMessage(message, options, "Test Again", open);
    if (answer === "Test Again") return test(window, server, state);
    return answer === open ? vscode.window.showTextDocument(vscode.Uri.file(server.file)) : "again";
  }
  await vscode.window.showQuickPick(toolTexts(result), {
    title: `MCP server ${server.name}: ${toolCount(result)}`,
    placeHolder: plain(result.about),
    matchOnDetail: true,
  });
  return "again";
}

/** Returns what the server offers or why it does not work; undefined when the user cancels. */
async function testResult(window: Window, name: string): Promise<McpTest | undefined> {
  const options = {
    location: vscode.ProgressLocation.Notification,
    title: `Tiller: testing the MCP server ${name}`,
    cancellable: true,
  };
  return vscode.window.withProgress(options, async (_, token) => {
    const cancelled = new AbortController();
    token.onCancellationRequested(() => cancelled.abort());
    try {
      // The limit is the server's own `startTimeoutS`, or the button of the notification.
      const unlimited = { timeoutMs: 0, abort: cancelled.signal };
      return JSON.parse(await mcp(window, ["test", name, "--json"], unlimited)) as McpTools;
    } catch (thrown) {
      if (token.isCancellationRequested) return undefined;
      return { failure: failureText(asAgentError(thrown).message, name) };
    }
  });
}

async function change(
  window: Window,
  verb: "enable" | "disable" | "remove",
  { name, origin }: McpServer,
): Promise<"again"> {
  await mcp(window, [verb, name, ...(origin === "project" ? ["--project"] : [])]);
  return "again";
}

async function remove(window: Window, server: McpServer): Promise<"again"> {
  const question = `Remove the MCP server ${server.name}?`;
  const options = { modal: true, detail: `Its entry in ${server.file} is deleted.` };
  const answer = await vscode.window.showWarningMessage(question, options, "Remove");
  return answer === "Remove" ? change(window, "remove", server) : "again";
}

async function add(window: Window): Promise<void> {
  const name = await vscode.window.showInputBox({
    title: "Add an MCP server: name",
    prompt: "Name of the server",
    placeHolder: "docs",
    ignoreFocusOut: true,
  });
  if (!name?.trim()) return;
  const way = await vscode.window.showInputBox({
    title: "Add an MCP server: address",
    prompt: "URL, or the command that starts the server; put arguments with spaces in quotes",
    placeHolder: "https://host/mcp, or: npx -y @acme/docs-mcp",
    ignoreFocusOut: true,
  });
  if (!way?.trim()) return;
  const words = wordsOf(way);
  const isUrl = words.length === 1 && /^https?:\/\//.test(words[0] ?? "");
  const network = isUrl ? [] : await askNetwork();
  if (network === undefined) return;
  const said = await mcp(window, ["add", name.trim(), ...network, "--", ...words]);
  void vscode.window.showInformationMessage(`Tiller: ${said.trim()}`);
}

/** Cuts a command at its spaces, except inside of quotes. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|\S+/g)].map(
    ([all, double, single]) => double ?? single ?? all,
  );
}

async function askNetwork(): Promise<string[] | undefined> {
  const choices = [
    { label: "Without the network", words: [] as string[] },
    { label: "With the network", words: ["--network"] },
  ];
  const answer = await vscode.window.showQuickPick(choices, {
    title: "Add an MCP server: network",
    placeHolder: "The command runs in the sandbox. Does it need the network?",
    ignoreFocusOut: true,
  });
  return answer?.words;
}

/** Runs `tiller mcp` in the folder of the window. */
function mcp(
  window: Window,
  words: readonly string[],
  options: Pick<RunOptions, "timeoutMs" | "abort"> = {},
): Promise<string> {
  const folder = vscode.workspace.workspaceFolders?.find((one) => one.uri.scheme === "file");
  const cwd = folder === undefined ? {} : { cwd: folder.uri.fsPath };
  return runTiller(window, ["mcp", ...words], { ...options, ...cwd });
}
