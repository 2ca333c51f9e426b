// The LSP client: which of its features are used, and what it says of itself.

import { type ChildProcess, spawn } from "node:child_process";
import * as vscode from "vscode";
import {
  CloseAction,
  type DynamicFeature,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  type StaticFeature,
} from "vscode-languageclient/node";
import type { AgentOptions } from "../../shared/wire.js";
import { serverSettings } from "../settings.js";
import type { Launch } from "./find.js";

/**
 * Left to the panel and to our own commands: the server's commands would take their names, and its progress would
 * stand twice in the status bar.
 */
const NOT_USED: ReadonlySet<string> = new Set([
  "workspace/executeCommand",
  "window/workDoneProgress/create",
  "textDocument/codeAction",
  "textDocument/codeLens",
]);

class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    // Asked before the fields of this class are there: the constructor above registers features.
    if ("registrationType" in feature && NOT_USED.has(feature.registrationType.method)) return;
    super.registerFeature(feature);
  }

  /** Failures are shown by the panel and the status bar, with what to do about them: here they are only logged. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export interface ClientParts {
  launch: Launch;
  folder: string;
  clientId: string;
  version: string;
  restricted: boolean;
  log: vscode.LogOutputChannel;
  /** The server process ended, with the last that it said. */
  ended: (why: string) => void;
}

/** A client, and the end of its process for when it does not end by itself. */
export interface Served {
  client: LanguageClient;
  kill: () => void;
}

/** Makes a client that is not started yet. Who starts it decides what follows when its server ends. */
export function makeClient(parts: ClientParts): Served {
  const children: ChildProcess[] = [];
  const options: LanguageClientOptions = {
    documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
    outputChannel: parts.log,
    initializationOptions: { agent: agentOptions(parts) },
    initializationFailedHandler: () => false,
    errorHandler: {
      error: () => ({ action: ErrorAction.Shutdown, handled: true }),
      closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
    },
    synchronize: { configurationSection: "tiller" },
    middleware: {
      // VS Code counts its two kinds from 0, the protocol from 1.
      provideInlineCompletionItems: (document, position, context, token, next) =>
        next(document, position, { ...context, triggerKind: context.triggerKind + 1 }, token),
      workspace: {
        configuration: () => [serverSettings()],
        // Told that something has changed; what counts is asked for, without what concerns the editor alone.
        didChangeConfiguration: async () => {
          await client.sendNotification("workspace/didChangeConfiguration", { settings: null });
        },
      },
    },
  };
  const begin = async () => {
    const child = await start(parts);
    children.push(child);
    return child;
  };
  const client = new Client("tiller", "Tiller", begin, options);
  // Inline completions: the only one of them.
  client.registerProposedFeatures();
  return {
    client,
    kill: () => {
      for (const child of children) child.kill();
    },
  };
}

function agentOptions(parts: ClientParts): AgentOptions {
  return {
    clientId: parts.clientId,
    client: { name: vscode.env.appName, version: parts.version, role: "editor" },
    edit: { openClean: "buffer", review: "inline", saveBarrier: "auto" },
    // What the window may not do the agent may not do either.
    ...(parts.restricted ? { permission: { mode: "plan" } } : {}),
    capabilities: {
      v: 1,
      events: { channel: "progress", detail: ["full"] },
      permission: { note: {} },
      question: { form: {} },
      edit: { preconditions: {}, review: ["inline"], perDocumentResult: {}, save: {} },
      documents: { save: {}, read: {}, dirty: {} },
      diagnostics: { versions: {} },
      diffView: {},
      notice: {},
    },
  };
}

const SAID_CHARS = 4_000;

function start(parts: ClientParts): Promise<ChildProcess> {
  const { command, base, words } = parts.launch;
  const args = [...base, "lsp", ...words];
  return new Promise((done, fail) => {
    const child = spawn(command, args, {
      cwd: parts.folder,
      env: process.env,
      stdio: "pipe",
      windowsHide: true,
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-SAID_CHARS);
    });
    child.once("error", (error) => {
      parts.ended(error.message);
      fail(error);
    });
    child.once("spawn", () => done(child));
    // Not `exit`: what it said last may still be on its way then.
    child.once("close", (code, signal) => {
      const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
      const words = said.trim().split("\n").at(-1)?.trim();
      parts.ended(words ? `${how}: ${words}` : how);
    });
  });
}
