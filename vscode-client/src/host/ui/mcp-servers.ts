// The MCP servers of this folder: a list to look at, add to and remove from. The program changes the files.

import { dirname } from "node:path";
import * as vscode from "vscode";
import { AgentError, NOT_SERVED } from "../agent/port.js";
import { localPrograms } from "../server/programs.js";
import type { Window } from "../window.js";

interface McpServer {
  name: string;
  origin: "user" | "project";
  file: string;
  way: string;
}

type Row = vscode.QuickPickItem & { act?: () => Promise<unknown>; server?: McpServer };

const COMMAND_MS = 30_000;
const REMOVE: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("trash"), tooltip: "Remove" };
const EDIT: vscode.QuickInputButton = {
  iconPath: new vscode.ThemeIcon("go-to-file"),
  tooltip: "Open mcp.json",
};

/** Shows the servers until the list is left; each change shows it anew. */
export async function showMcpServers(window: Window): Promise<void> {
  const pick = vscode.window.createQuickPick<Row>();
  pick.title = "MCP Servers";
  pick.placeholder = "Servers whose tools the agent can use";
  pick.matchOnDescription = true;
  const fill = async () => {
    pick.busy = true;
    pick.items = await rows(window);
    pick.busy = false;
  };
  const done = new Promise<Row | undefined>((resolve) => {
    pick.onDidAccept(() => resolve(pick.selectedItems[0]));
    pick.onDidHide(() => resolve(undefined));
    pick.onDidTriggerItemButton(async ({ button, item: { server } }) => {
      if (server === undefined) return;
      if (button === EDIT) return void vscode.window.showTextDocument(vscode.Uri.file(server.file));
      const place = server.origin === "project" ? ["--project"] : [];
      await mcp(window, ["remove", server.name, ...place]);
      await fill();
    });
  });
  pick.show();
  try {
    await fill();
    const chosen = await done;
    await chosen?.act?.();
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
    ...servers.map(
      (server): Row => ({
        label: server.name,
        description: server.way,
        detail: server.origin === "project" ? "named by this folder" : "your own",
        buttons: [EDIT, REMOVE],
        server,
        act: async () => void vscode.window.showTextDocument(vscode.Uri.file(server.file)),
      }),
    ),
    ...(problems.length > 0 ? [separator("Problems")] : []),
    ...problems.map((one): Row => ({ label: `$(warning) ${one}` })),
  ];
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
    prompt: "URL, or the command that starts the server",
    placeHolder: "https://host/mcp, or: npx -y @acme/docs-mcp",
    ignoreFocusOut: true,
  });
  if (!way?.trim()) return;
  const words = way.trim().split(/\s+/);
  const isUrl = words.length === 1 && /^https?:\/\//.test(words[0] ?? "");
  const network = isUrl ? [] : await askNetwork();
  if (network === undefined) return;
  const said = await mcp(window, ["add", name.trim(), ...network, "--", ...words]);
  void vscode.window.showInformationMessage(`Tiller: ${said.trim()}`);
}

async function askNetwork(): Promise<string[] | undefined> {
  const choices = [
    { label: "Without the network", words: [] as string[] },
    { label: "With the network", words: ["--network"] },
  ];
  const chosen = await vscode.window.showQuickPick(choices, {
    title: "Add an MCP server: network",
    placeHolder: "The command runs in the sandbox. Does it need the network?",
    ignoreFocusOut: true,
  });
  return chosen?.words;
}

/** Runs `tiller mcp` in the folder of the window; throws what it complains of. */
async function mcp(window: Window, words: string[]): Promise<string> {
  await window.daemon.start();
  const launch = window.daemon.launch;
  if (launch === undefined) throw new AgentError("The Tiller server is not running.", NOT_SERVED);
  const folder = vscode.workspace.workspaceFolders?.find((one) => one.uri.scheme === "file")?.uri.fsPath;
  const cwd = folder ?? dirname(launch.command);
  const options = { timeoutMs: COMMAND_MS, cwd };
  const ran = await localPrograms().run(launch.command, [...launch.base, "mcp", ...words], options);
  if (ran.code !== 0)
    throw new AgentError(ran.err.trim().split("\n").at(-1) ?? "The command failed.", NOT_SERVED);
  return ran.out;
}
