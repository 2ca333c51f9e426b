// Follows one session of the server at a time, over reconnections, and tells what happens in it.

import type { AgentEvent, Item, Snapshot } from "../../shared/wire.js";
import { Signal } from "../signal.js";
import { type Cursor, follow, type Step } from "./follow.js";
import { type AgentPort, asAgentError } from "./port.js";

/** How many items of the past are given with a snapshot. */
const PAGE = 200;
/** Before a subscription that failed is tried again. */
const AGAIN_MS = 500;
/** After so many failures in a row the feed gives up, and says so. */
const MOST_FAILURES = 10;

/** Before the first snapshot came. */
const NOTHING_YET: Cursor = { epoch: "", seq: 0 };

/** A session as it stands, with the newest of its past. */
export interface Picture {
  snapshot: Snapshot;
  items: Item[];
  prev?: string;
}

/** What the feed tells of; `opened`: here begins what is shown; `reread`: some deltas were left out. */
export type FeedNews =
  | { kind: "events"; session: string; events: AgentEvent[] }
  | { kind: "opened"; snapshot: Snapshot }
  | { kind: "reread" }
  /** What was said before cannot be read; what goes on can. */
  | { kind: "unread"; why: string }
  | { kind: "lost"; why: string };

export class SessionFeed {
  readonly news = new Signal<FeedNews>();
  readonly #port: AgentPort;
  readonly #pause: (ms: number) => Promise<void>;
  #session: string | undefined;
  #following: AbortController | undefined;
  /** Whether the session is followed without being opened. */
  #isBeside = false;
  /** The newest snapshot of a session that is followed without being opened. */
  #besideSnapshot: Snapshot | undefined;
  readonly #name: string;
  #tokens = 0;

  /** @param name Told from those of other feeds of this window. */
  constructor(
    port: AgentPort,
    pause = (ms: number) => new Promise<void>((go) => setTimeout(go, ms)),
    name = "tiller-panel",
  ) {
    this.#name = name;
    this.#port = port;
    this.#pause = pause;
  }

  /** The id of the session that is followed; undefined before the first was opened. */
  get session(): string | undefined {
    return this.#session;
  }

  /**
   * Opens a session and follows it from now on instead of the one before.
   *
   * @param which An id, `latest` or `new`; left out, the one that this window had last.
   */
  async open(which?: string): Promise<Snapshot> {
    const snapshot = await this.#port.request(
      "agent/session/open",
      which === undefined ? {} : { session: which },
    );
    this.#following?.abort();
    this.#following = new AbortController();
    this.#session = snapshot.session;
    this.#isBeside = false;
    this.news.fire({ kind: "opened", snapshot });
    const { session, epoch, seq } = snapshot;
    void this.#follow(session, { epoch, seq }, this.#following.signal);
    return snapshot;
  }

  /** Follows a session from its snapshot on and opens none: the one in front stays there. When it is gone that is told as lost. */
  beside(session: string): void {
    this.#following?.abort();
    this.#following = new AbortController();
    this.#session = session;
    this.#isBeside = true;
    this.#besideSnapshot = undefined;
    void this.#follow(session, undefined, this.#following.signal);
  }

  /** Gives the session as it stands; events with a higher `seq` than its snapshot's come, or came, as news. */
  async picture(): Promise<Picture | undefined> {
    const session = this.#session;
    if (session === undefined) return undefined;
    const snapshot = this.#isBeside
      ? this.#besideSnapshot
      : await this.#port.request("agent/session/open", { session });
    if (snapshot === undefined) return undefined;
    const before = snapshot.history.cursor;
    if (before === null) return { snapshot, items: [] };
    try {
      const page = await this.#port.request("agent/session/read", { session, before, limit: PAGE });
      return { snapshot, items: page.items, ...(page.prev === undefined ? {} : { prev: page.prev }) };
    } catch (thrown) {
      // What goes on is shown all the same. Of a session in which nothing was said yet nothing is stored.
      const error = asAgentError(thrown);
      if (error.data?.kind !== "SessionNotFound") this.news.fire({ kind: "unread", why: error.message });
      return { snapshot, items: [] };
    }
  }

  dispose(): void {
    this.#following?.abort();
  }

  async #follow(session: string, opened: Cursor | undefined, stop: AbortSignal): Promise<void> {
    const place = { cursor: opened ?? NOTHING_YET };
    let failures = 0;
    while (failures < MOST_FAILURES) {
      const from = place.cursor.seq;
      const outcome = await this.#attempt(session, place, stop);
      if (stop.aborted || outcome === "over") return;
      if (outcome === "gone") return await this.#gone(opened === undefined);
      if (outcome !== "exchanged") failures = place.cursor.seq === from ? failures + 1 : 0;
      await this.#pause(AGAIN_MS);
    }
    this.news.fire({ kind: "lost", why: "The server does not give the events of the session." });
  }

  /** Follows until something ends it, and says what: `exchanged` is the server, and costs nothing. */
  async #attempt(
    session: string,
    place: { cursor: Cursor },
    stop: AbortSignal,
  ): Promise<"over" | "gone" | "again" | "exchanged"> {
    try {
      const reason = await this.#subscribe(session, place, stop);
      if (reason === "closed") return "gone";
      return reason === "superseded" ? "over" : "again";
    } catch (thrown) {
      const error = asAgentError(thrown);
      if (error.data?.kind === "SessionNotFound") return "gone";
      return error.isRetriggered ? "exchanged" : "again";
    }
  }

  /** The session was closed or deleted: what was in front gives way to whatever the server offers. */
  async #gone(isBeside: boolean): Promise<void> {
    if (isBeside) return this.news.fire({ kind: "lost", why: "The session was closed." });
    try {
      await this.open();
    } catch (thrown) {
      this.news.fire({ kind: "lost", why: asAgentError(thrown).message });
    }
  }

  async #subscribe(session: string, place: { cursor: Cursor }, stop: AbortSignal): Promise<string> {
    this.#tokens += 1;
    const token = `${this.#name}-${this.#tokens}`;
    const one = new AbortController();
    const end = () => one.abort();
    stop.addEventListener("abort", end);
    const frames = this.#port.onFrame(token, (frame) => {
      if (one.signal.aborted) return;
      const step = follow(place.cursor, frame);
      // A session that is not opened gets a new snapshot only with a new subscription.
      const isNew = step.do === "reread" && this.#isBeside;
      if (isNew) place.cursor = NOTHING_YET;
      if (isNew || step.do === "resubscribe") one.abort();
      else this.#take(session, place, step);
    });
    try {
      const { epoch, seq } = place.cursor;
      const known = place.cursor === NOTHING_YET ? {} : { epoch, from: seq };
      const params = { session, partialResultToken: token, ...known };
      const result = await this.#port.request("agent/subscribe", params, one.signal);
      return one.signal.aborted ? "again" : result.reason;
    } catch (thrown) {
      if (one.signal.aborted) return "again";
      throw thrown;
    } finally {
      stop.removeEventListener("abort", end);
      frames.dispose();
    }
  }

  #take(session: string, place: { cursor: Cursor }, step: Exclude<Step, { do: "resubscribe" }>): void {
    if (step.do === "ignore") return;
    place.cursor = step.cursor;
    if (step.do === "take") this.news.fire({ kind: "events", session, events: step.events });
    else if (step.do === "replace") {
      if (this.#isBeside) this.#besideSnapshot = step.frame.snapshot;
      this.news.fire({ kind: "opened", snapshot: step.frame.snapshot });
    } else this.news.fire({ kind: "reread" });
  }
}
