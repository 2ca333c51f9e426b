// The commands of the palette, the keys and the panel.

import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { Block, Range } from "../../shared/wire.js";
import { testBlocks } from "../editor/test-failures.js";
import { attachedBlock, diagnosticsBlock, fileBlock, selectionBlocks } from "../panel/selection.js";
import { forgetInstallation } from "../server/prepare.js";
import { ofSession, type Window } from "../window.js";
import { attempt } from "./attempt.js";
import { chooseMode } from "./choose-mode.js";
import { commitMessage } from "./commit-message.js";
import { pressExtensionKey } from "./extension-keys.js";
import { inlineEdit } from "./inline-edit.js";
import { showMcpServers } from "./mcp-servers.js";
import { restartServer } from "./restart.js";
import { addModel, chooseModel, signIn, signOut } from "./sign-in.js";

const PYTHON_PAGE = "https://www.python.org/downloads/";
const WALKTHROUGH = "tiller.tiller#tiller.start";

type Act = (...words: never[]) => unknown;

export function registerCommands(window: Window): vscode.Disposable[] {
  const acts: Record<string, Act> = {
    ...serverActs(window),
    ...sessionActs(window),
    ...composerActs(window),
    ...window.editor.acts,
  };
  return Object.entries(acts).map(([name, act]) =>
    vscode.commands.registerCommand(name, (...words: never[]) =>
      attempt(window.log, async () => act(...words)),
    ),
  );
}

function serverActs(window: Window): Record<string, Act> {
  const { context, daemon, log, panel } = window;
  const run = vscode.commands.executeCommand;
  return {
    "tiller.open": () => panel.compose({ focus: true }),
    "tiller.openInEditor": () => panel.openInEditor(),
    "tiller.showLog": () => log.show(),
    "tiller.restartServer": () => restartServer(window),
    "tiller.reinstallServer": async () => {
      await forgetInstallation(context);
      await daemon.restart();
    },
    "tiller.openSettings": () => run("workbench.action.openSettings", "@ext:tiller.tiller"),
    "tiller.openFolder": () => run("workbench.action.files.openFolder"),
    "tiller.manageTrust": () => run("workbench.trust.manage"),
    "tiller.installPython": () => vscode.env.openExternal(vscode.Uri.parse(PYTHON_PAGE)),
    "tiller.openWalkthrough": () => run("workbench.action.openWalkthrough", WALKTHROUGH, false),
  };
}

function sessionActs(window: Window): Record<string, Act> {
  const { daemon, editor, feed, findings, panel, watch } = window;
  const session = () => ofSession(window);
  return {
    "tiller.newSession": async () => {
      await feed.open("new");
      await panel.compose({ focus: true });
    },
    // Not in the palette: a notification of a session that is not in front leads here.
    "tiller.openSession": async (id?: unknown) => {
      if (typeof id === "string" && id !== feed.session) await feed.open(id);
      await panel.show("transcript");
    },
    "tiller.allow": () => answer(window, "allowOnce"),
    "tiller.reject": () => answer(window, "rejectOnce"),
    "tiller.stop": async () => {
      const run = watch.now?.run;
      await daemon.request("agent/run/cancel", { ...session(), ...(run === undefined ? {} : { run }) });
    },
    "tiller.compact": () => daemon.request("agent/compact", session()),
    "tiller.cycleModel": () => daemon.request("agent/model/cycle", { ...session(), direction: 1 }),
    "tiller.cycleThinking": () => daemon.request("agent/thinking/cycle", session()),
    "tiller.chooseMode": (mode?: unknown) => chooseMode(window, mode),
    "tiller.chooseModel": () => chooseModel(window),
    "tiller.addModel": () => addModel(window),
    "tiller.setCostLimit": () => setCostLimit(window),
    "tiller.mcpServers": () => showMcpServers(window),
    "tiller.extensionKey": (key?: unknown) => pressExtensionKey(window, key),
    "tiller.showRules": () => panel.show("rules"),
    "tiller.signIn": (provider?: string) =>
      signIn(window, typeof provider === "string" ? provider : undefined),
    "tiller.signOut": (provider?: string) =>
      signOut(window, typeof provider === "string" ? provider : undefined),
    "tiller.forkSession": async () => {
      const made = await daemon.request("agent/session/fork", session());
      await feed.open(made.session);
      await panel.show("transcript");
    },
    "tiller.exportMarkdown": () => exported(window, "markdown"),
    "tiller.exportHtml": () => exported(window, "html"),
    "tiller.find": () => panel.show("transcript", { find: true }),
    "tiller.showSessions": () => panel.show("sessions"),
    "tiller.showTree": () => panel.show("tree"),
    "tiller.showCheckpoints": () => panel.show("checkpoints"),
    "tiller.showChanges": () => panel.show("changes"),
    "tiller.review": () => findings.review(),
    "tiller.stopReview": () => findings.stop(),
    "tiller.applySuggestion": async (uri: string, range: Range, message: string) => {
      if (await editor.suggestions.apply(uri, range, message)) findings.applied(uri, message);
    },
  };
}

/** Sets the limit of this session's runs; the settings can only be tightened. */
async function setCostLimit(window: Window): Promise<void> {
  const said = await vscode.window.showInputBox({
    title: "Cost limit of one run in this session",
    prompt: "US dollars; leave empty to use the limit of your settings",
    placeHolder: "0.50",
    validateInput: (text) =>
      text.trim() === "" || Number(text) > 0 ? undefined : "Enter an amount in US dollars, such as 0.50.",
  });
  if (said === undefined) return;
  const budgets = said.trim() === "" ? null : { usd: Number(said) };
  await window.daemon.request("agent/session/configure", { ...ofSession(window), set: { budgets } });
}

const EXPORTS = { markdown: "session.md", html: "session.html" } as const;

/** Writes the session into a file that the user chooses. */
async function exported(window: Window, format: keyof typeof EXPORTS): Promise<void> {
  const { content } = await window.daemon.request("agent/session/export", { ...ofSession(window), format });
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const place = folder === undefined ? {} : { defaultUri: vscode.Uri.joinPath(folder, EXPORTS[format]) };
  const target = await vscode.window.showSaveDialog(place);
  if (target !== undefined) await vscode.workspace.fs.writeFile(target, Buffer.from(content, "utf8"));
}

/** Answers the request that the panel shows; one that is not in sight is shown, and answered by the next press. */
async function answer(window: Window, kind: "allowOnce" | "rejectOnce"): Promise<void> {
  const { daemon, panel, watch } = window;
  const [asked] = watch.now?.pending ?? [];
  if (asked === undefined) {
    void vscode.window.showInformationMessage("Tiller: no request waits for your answer.");
    return;
  }
  const option = "options" in asked ? asked.options.find((one) => one.kind === kind) : undefined;
  if (option === undefined || !panel.isVisible) return panel.show("transcript");
  await daemon.request("agent/permission/respond", { request: asked.request, option: option.id });
}

function composerActs(window: Window): Record<string, Act> {
  const { panel } = window;
  return {
    "tiller.attachSelection": async () => {
      const blocks = selectionBlocks();
      const active = vscode.window.activeTextEditor;
      if (blocks.length > 0) await panel.compose({ blocks, focus: true });
      else if (active !== undefined)
        await panel.compose({ blocks: [fileBlock(active.document.uri)], focus: true });
    },
    "tiller.attachFile": async (uri?: vscode.Uri, all?: vscode.Uri[]) => {
      const uris = all ?? (uri instanceof vscode.Uri ? [uri] : await chosenFiles());
      const blocks = await Promise.all(uris.map((one) => attachedBlock(one, window.daemon)));
      if (blocks.length > 0) await panel.compose({ blocks, focus: true });
    },
    "tiller.inlineEdit": () => inlineEdit(window),
    "tiller.commitMessage": (source?: unknown) => commitMessage(window, source),
    "tiller.askSelection": async () => {
      const blocks = selectionBlocks();
      const active = vscode.window.activeTextEditor;
      const here = blocks.length > 0 || active === undefined ? blocks : [fileBlock(active.document.uri)];
      await panel.compose({ blocks: here, focus: true });
    },
    "tiller.fix": async (uri?: vscode.Uri, items?: vscode.Diagnostic[]) => {
      const document = uri ?? vscode.window.activeTextEditor?.document.uri;
      if (document === undefined) return;
      const problems = items ?? vscode.languages.getDiagnostics(document);
      if (problems.length === 0)
        return void vscode.window.showInformationMessage("Tiller: there are no problems here.");
      const text = problems.length === 1 ? "Fix this problem." : "Fix these problems.";
      await say(window, text, [diagnosticsBlock(document, problems)]);
    },
    "tiller.fixTest": async (given?: unknown) => {
      const blocks = testBlocks(given);
      if (blocks.length > 0) await say(window, "This test fails. Find out why, and repair it.", blocks);
    },
  };
}

/** Says something for the user at once; during a run it waits for its end. Without a model the words go to the composer. */
async function say(window: Window, text: string, blocks: Block[]): Promise<void> {
  const { daemon, panel, watch } = window;
  if (!daemon.state.ready || watch.now?.model == null) return panel.compose({ text, blocks, focus: true });
  await panel.show("transcript");
  await daemon.request("agent/prompt", {
    ...ofSession(window),
    messageId: randomUUID(),
    content: [{ type: "text", text }, ...blocks],
    delivery: "followUp",
  });
}

async function chosenFiles(): Promise<vscode.Uri[]> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const place = folder === undefined ? {} : { defaultUri: folder };
  return (await vscode.window.showOpenDialog({ canSelectMany: true, openLabel: "Attach", ...place })) ?? [];
}
