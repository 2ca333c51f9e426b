// What of the agent's changes waits for the user's word, as it stands in the text of this moment.

import * as vscode from "vscode";
import type { AgentEvent, ChangesResolveResult, Resolution } from "../../shared/wire.js";
import { type AgentPort, asAgentError } from "../agent/port.js";
import type { FeedNews, SessionFeed } from "../agent/session-feed.js";
import { Signal } from "../signal.js";
import { type ChangedFile, waitingFiles } from "./hunks.js";

const PAUSE_MS = 120;
/** While somebody types, places are asked for less often: marks move with the text by themselves. */
const TYPING_MS = 400;

export class Changes {
  /** Fires when something else waits, or waits elsewhere. */
  readonly changed = new Signal<void>();
  readonly #port: AgentPort;
  readonly #feed: SessionFeed;
  readonly #log: vscode.LogOutputChannel;
  readonly #listening: { dispose(): void }[];
  #files: readonly ChangedFile[] = [];
  #timer: NodeJS.Timeout | undefined;
  #asked = 0;

  constructor(port: AgentPort, feed: SessionFeed, log: vscode.LogOutputChannel) {
    this.#port = port;
    this.#feed = feed;
    this.#log = log;
    this.#listening = [
      feed.news.listen((news) => {
        if (concernsChanges(news)) this.refresh();
      }),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (this.of(document.uri) !== undefined) this.refresh(TYPING_MS);
      }),
    ];
  }

  get files(): readonly ChangedFile[] {
    return this.#files;
  }

  of(uri: vscode.Uri): ChangedFile | undefined {
    const wanted = uri.toString();
    return this.#files.find((one) => one.uri === wanted);
  }

  /** Asks soon what waits. */
  refresh(pauseMs = PAUSE_MS): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#ask(), pauseMs);
  }

  async resolve(items: Resolution[]): Promise<ChangesResolveResult> {
    const session = this.#feed.session;
    const result = await this.#port.request("agent/changes/resolve", {
      items,
      ...(session === undefined ? {} : { session }),
    });
    this.refresh();
    return result;
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const one of this.#listening) one.dispose();
  }

  async #ask(): Promise<void> {
    const session = this.#feed.session;
    if (session === undefined) return;
    this.#asked += 1;
    const number = this.#asked;
    try {
      const set = await this.#port.request("agent/changes/list", { session });
      if (number !== this.#asked) return;
      const files = waitingFiles(set).map((file) => ({
        ...file,
        uri: vscode.Uri.parse(file.uri, true).toString(),
      }));
      if (JSON.stringify(files) === JSON.stringify(this.#files)) return;
      this.#files = files;
      this.changed.fire();
    } catch (thrown) {
      this.#log.info(`The changes are not known: ${asAgentError(thrown).message}`);
    }
  }
}

function concernsChanges(news: FeedNews): boolean {
  if (news.kind === "events") return news.events.some(isAboutChanges);
  return news.kind === "opened" || news.kind === "reread";
}

function isAboutChanges({ type }: AgentEvent): boolean {
  return (
    type === "changes.updated" ||
    type.startsWith("edit.") ||
    type === "run.ended" ||
    type === "checkpoint.restored"
  );
}
