// The MCP servers of this folder: a list to look at, add to and remove from. The program changes the files.

import * as vscode from "vscode";
import type { Window } from "../window.js";
import { runTiller } from "./sign-in.js";

interface McpServer {
  name: string;
  origin: "user" | "project";
  file: string;
  way: string;
}

/** What is done with a row that was chosen. */
type Act = () => Promise<unknown>;
type Row = vscode.QuickPickItem & { act?: Act; remove?: Act };

const REMOVE: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("trash"), tooltip: "Remove" };

/** Shows the servers until one is opened or the list is left; it is shown anew after each change. */
export async function showMcpServers(window: Window): Promise<void> {
  for (let act = await chosen(window); act !== undefined; act = await chosen(window))
    if ((await act()) !== "again") return;
}

async function chosen(window: Window): Promise<Act | undefined> {
  const pick = vscode.window.createQuickPick<Row>();
  pick.title = "MCP Servers";
  pick.placeholder = "Servers whose tools the agent can use";
  pick.matchOnDescription = true;
  pick.busy = true;
  const done = new Promise<Act | undefined>((resolve) => {
    pick.onDidAccept(() => resolve(pick.selectedItems[0]?.act));
    pick.onDidTriggerItemButton(({ item }) => resolve(item.remove));
    pick.onDidHide(() => resolve(undefined));
  });
  pick.show();
  try {
    pick.items = await rows(window);
    pick.busy = false;
    return await done;
  } finally {
    pick.dispose();
  }
}

async function rows(window: Window): Promise<Row[]> {
  const said = await mcp(window, ["list", "--json"]);
  const { servers, problems } = JSON.parse(said) as { servers: McpServer[]; problems: string[] };
  const separator = (label: string): Row => ({ label, kind: vscode.QuickPickItemKind.Separator });
  return [
    { label: "$(add) Add a server…", act: () => add(window) },
    ...(servers.length > 0 ? [separator("Servers")] : []),
    ...servers.map((one) => row(window, one)),
    ...(problems.length > 0 ? [separator("Problems")] : []),
    ...problems.map((one): Row => ({ label: `$(warning) ${one}` })),
  ];
}

function row(window: Window, server: McpServer): Row {
  const { name, origin, file, way } = server;
  // A file that other agents read too is changed by hand.
  const isOwn = !file.endsWith(".mcp.json");
  return {
    label: name,
    description: way,
    detail: origin === "project" ? "of this folder" : "your own",
    act: async () => vscode.window.showTextDocument(vscode.Uri.file(file)),
    ...(isOwn && { buttons: [REMOVE], remove: () => remove(window, server) }),
  };
}

async function remove(window: Window, { name, origin, file }: McpServer): Promise<"again"> {
  const question = `Remove the MCP server ${name}?`;
  const options = { modal: true, detail: `Its entry in ${file} is deleted.` };
  if ((await vscode.window.showWarningMessage(question, options, "Remove")) === "Remove")
    await mcp(window, ["remove", name, ...(origin === "project" ? ["--project"] : [])]);
  return "again";
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
function mcp(window: Window, words: readonly string[]): Promise<string> {
  const folder = vscode.workspace.workspaceFolders?.find((one) => one.uri.scheme === "file");
  return runTiller(window, ["mcp", ...words], folder === undefined ? {} : { cwd: folder.uri.fsPath });
}
