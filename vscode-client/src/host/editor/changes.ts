// What of the agent's changes waits for the user's word, whatever session is in front, as it stands in the text of this moment.

import * as vscode from "vscode";
import type { AgentEvent, ChangeSet, ChangesResolveResult, Resolution } from "../../shared/wire.js";
import type { Others } from "../agent/others.js";
import { type AgentPort, asAgentError } from "../agent/port.js";
import type { FeedNews, SessionFeed } from "../agent/session-feed.js";
import { Signal } from "../signal.js";
import { type ChangedFile, joined, ownersIn, waitingFiles } from "./hunks.js";

const PAUSE_MS = 120;
/** While somebody types, places are asked for less often: marks move with the text by themselves. */
const TYPING_MS = 400;

export class Changes {
  /** Fires when something else waits, or waits elsewhere. */
  readonly changed = new Signal<void>();
  readonly #port: AgentPort;
  readonly #feed: SessionFeed;
  readonly #others: Others;
  readonly #log: vscode.LogOutputChannel;
  readonly #listening: { dispose(): void }[];
  #files: readonly ChangedFile[] = [];
  /** The sessions whose changes wait, by the id of the hunk and by the URI of the file. */
  #owners = new Map<string, string[]>();
  #timer: NodeJS.Timeout | undefined;
  #asked = 0;

  constructor(
    port: AgentPort,
    { feed, others }: { feed: SessionFeed; others: Others },
    log: vscode.LogOutputChannel,
  ) {
    this.#port = port;
    this.#feed = feed;
    this.#others = others;
    this.#log = log;
    this.#listening = [
      feed.news.listen((news) => {
        if (concernsChanges(news)) this.refresh();
      }),
      others.news.listen(({ news }) => {
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

  /** Gives all that the session changed, as it is at this moment. */
  list(): Promise<ChangeSet> {
    const session = this.#feed.session;
    return this.#port.request("agent/changes/list", session === undefined ? {} : { session });
  }

  /** Decides in the sessions whose changes they are. */
  async resolve(items: Resolution[]): Promise<ChangesResolveResult["results"]> {
    const bySession = new Map<string, Resolution[]>();
    for (const item of items)
      for (const session of this.#ownersOf(item))
        bySession.set(session, [...(bySession.get(session) ?? []), item]);
    const results: ChangesResolveResult["results"] = [];
    for (const [session, own] of bySession) {
      const answer = await this.#port.request("agent/changes/resolve", { session, items: own });
      results.push(...answer.results);
    }
    this.refresh();
    return results;
  }

  #ownersOf({ hunk, file, changeSet }: Resolution): readonly string[] {
    const known = this.#owners.get(hunk ?? file ?? "");
    if (known !== undefined) return known;
    const session = changeSet ?? this.#feed.session;
    return session === undefined ? [] : [session];
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
    const others = this.#others.all.filter((one) => one.unreviewed > 0).map((one) => one.session);
    try {
      const sets = await Promise.all(
        [session, ...others].map(async (id) => {
          const set = await this.#port.request("agent/changes/list", { session: id });
          const own = waitingFiles(set).map((file) => ({
            ...file,
            uri: vscode.Uri.parse(file.uri, true).toString(),
          }));
          return { session: id, files: own };
        }),
      );
      if (number !== this.#asked) return;
      this.#owners = ownersIn(sets);
      const files = joined(sets.map((one) => one.files));
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
