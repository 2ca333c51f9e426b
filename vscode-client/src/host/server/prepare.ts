// From what is open and what is installed to a server that can be started, or to the sentence that says why not.

import * as vscode from "vscode";
import type { PanelCommand } from "../../shared/commands.js";
import type { Prepared } from "./daemon.js";
import { findServer, type Search } from "./find.js";
import { bundledWheels, type Installed, install, uninstall, type Wheels } from "./install.js";
import { type ServerWishes, serverWishes } from "./machine-settings.js";
import { localPrograms, type Programs } from "./programs.js";
import { findPython } from "./python.js";

const FIXES: Record<Extract<Search, { kind: "missing" }>["fix"], { title: string; command: PanelCommand }> = {
  settings: { title: "Open Settings", command: "tiller.openSettings" },
  python: { title: "Get Python", command: "tiller.installPython" },
  log: { title: "Show Log", command: "tiller.showLog" },
};

export async function prepare(
  context: vscode.ExtensionContext,
  log: vscode.LogOutputChannel,
  doing: (text: string | undefined) => void,
): Promise<Prepared> {
  const folder = workingFolder();
  if (folder.kind === "problem") return folder;
  const programs = localPrograms();
  const storage = context.globalStorageUri.fsPath;
  const wheels = await bundledWheels(context.extensionPath);
  const search = await findServer(wishes(), {
    programs,
    wheels,
    storage,
    install: () => (wheels === undefined ? nothing() : installed(programs, wheels, storage, log, doing)),
    log: (text) => log.info(text),
  });
  if (search.kind === "missing")
    return { kind: "problem", problem: { text: search.text, action: FIXES[search.fix] } };
  return { kind: "launch", launch: search.launch, folder: folder.path };
}

/** Removes the extension's own installation; the next start makes it anew. */
export async function forgetInstallation(context: vscode.ExtensionContext): Promise<void> {
  const wheels = await bundledWheels(context.extensionPath);
  if (wheels !== undefined) await uninstall(wheels, context.globalStorageUri.fsPath);
}

function wishes(): ServerWishes {
  return serverWishes(vscode.workspace.getConfiguration("tiller.server"));
}

function workingFolder(): { kind: "folder"; path: string } | Extract<Prepared, { kind: "problem" }> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const onDisk = folders.find((one) => one.uri.scheme === "file");
  if (onDisk !== undefined) return { kind: "folder", path: onDisk.uri.fsPath };
  const action = { title: "Open Folder", command: "tiller.openFolder" } as const;
  const [first] = folders;
  const text =
    first === undefined
      ? "Tiller works on the files of a folder."
      : `Tiller runs programs and edits files on a disk; this workspace is virtual (${first.uri.scheme}). Open a folder on a disk.`;
  return { kind: "problem", problem: { text, action } };
}

async function nothing(): Promise<Installed> {
  return { kind: "failed", text: "This build of the extension brings no server." };
}

async function installed(
  programs: Programs,
  wheels: Wheels,
  storage: string,
  log: vscode.LogOutputChannel,
  doing: (text: string | undefined) => void,
): Promise<Installed> {
  const search = await findPython(programs, wishes().python.trim() || undefined, wheels.pythons);
  if (search.kind === "none") return { kind: "failed", text: search.text };
  doing("Installing the server; this is done once and needs no network…");
  const say = (text: string) => {
    if (text.trim() !== "") log.info(text.trim());
  };
  const place = {
    location: vscode.ProgressLocation.Notification,
    title: "Tiller: installing its server",
    cancellable: true,
  };
  return vscode.window.withProgress(place, async (_progress, token) => {
    const stop = new AbortController();
    token.onCancellationRequested(() => stop.abort());
    try {
      return await install(programs, wheels, storage, {
        python: search.python,
        say,
        abort: stop.signal,
      });
    } finally {
      doing(undefined);
    }
  });
}
