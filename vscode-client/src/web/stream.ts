// One event stream for all sessions that the page follows: a browser allows six connections to a server.

import type { Cursor } from "../host/agent/follow.js";
import { AgentError } from "../host/agent/port.js";
import { Signal } from "../host/signal.js";
import type { Frame } from "../shared/wire.js";
import { readEvents } from "./sse.js";

/** The server sends something at least this often. */
const HEARTBEAT_MS = 15_000;
/** Without a word for so long the connection is taken for dead: a phone that slept leaves it half open. */
const WATCHDOG_MS = 2.5 * HEARTBEAT_MS;
/** Before a stream that gave events, and was cut, is asked for again. */
const SOON_MS = 100;
/** Before one that gave none is asked for again, until the server names another time. */
const AGAIN_MS = 1000;
const AGAIN_MAX_MS = 15_000;
/** A server without its daemon ends each stream at once: one that lasts so long is there. */
const STEADY_MS = 400;
type Timer = ReturnType<typeof setTimeout>;
const OK = 200;
const NO_CONTENT = 204;
const UNAUTHORIZED = 401;

/** How the stream stands; `signedOut`: the server no longer takes the cookie. */
export type Connection = "open" | "lost" | "signedOut";

interface Follower {
  session: string;
  /** The last frame that was taken; undefined: a snapshot comes first. */
  cursor: Cursor | undefined;
  take: (frame: Frame) => void;
  end: (reason: string) => void;
}

export class EventStream {
  readonly connection = new Signal<Connection>();
  readonly #followers = new Set<Follower>();
  #current: AbortController | undefined;
  #isDue = false;
  #watchdog: Timer | undefined;
  #again: Timer | undefined;
  #steady: Timer | undefined;
  #againMs = AGAIN_MS;
  #failures = 0;
  #heardAt = 0;

  constructor() {
    // A page that was frozen has missed its timers: what it shows is looked after when it is seen again.
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.#wake();
    });
    window.addEventListener("online", () => this.#open());
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) this.#open();
    });
  }

  /**
   * Follows a session from after `cursor` on, else from a snapshot on; gives why it ended.
   *
   * Aborting ends it with `AgentError`.
   */
  follow(
    session: string,
    cursor: Cursor | undefined,
    take: (frame: Frame) => void,
    abort?: AbortSignal,
  ): Promise<string> {
    return new Promise((done, failed) => {
      const follower: Follower = { session, cursor, take, end: (reason) => leave(() => done(reason)) };
      const leave = (settle: () => void) => {
        if (!this.#followers.delete(follower)) return;
        this.#changed();
        settle();
      };
      this.#followers.add(follower);
      abort?.addEventListener("abort", () => leave(() => failed(new AgentError("cancelled", CANCELLED))));
      this.#changed();
    });
  }

  /** Opens the stream anew when all that changes in one turn has changed. */
  #changed(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      this.#open();
    });
  }

  #wake(): void {
    const isOpen = this.#current !== undefined && this.#failures === 0;
    if (!isOpen || Date.now() - this.#heardAt > HEARTBEAT_MS) this.#open();
  }

  #open(): void {
    this.#close();
    if (this.#followers.size === 0) return;
    const current = new AbortController();
    this.#current = current;
    this.#heard();
    void this.#run(current.signal);
  }

  #close(): void {
    this.#current?.abort();
    this.#current = undefined;
    for (const timer of [this.#watchdog, this.#again, this.#steady]) clearTimeout(timer);
  }

  /** Reads one stream to its end, and asks for the next. */
  async #run(stop: AbortSignal): Promise<void> {
    const status = await this.#read(stop).catch(() => undefined);
    if (stop.aborted) return;
    this.#close();
    if (status === NO_CONTENT) {
      for (const follower of [...this.#followers]) follower.end("closed");
      return;
    }
    // Another page may sign in: this one looks again when it is seen again.
    if (status === UNAUTHORIZED) return this.connection.fire("signedOut");
    this.connection.fire("lost");
    const pause = this.#failures === 0 ? SOON_MS : this.#againMs * 2 ** (this.#failures - 1);
    this.#failures += 1;
    this.#again = setTimeout(() => this.#open(), Math.min(AGAIN_MAX_MS, pause));
  }

  async #read(stop: AbortSignal): Promise<number> {
    const { query, known } = this.#wanted();
    const headers = known === "" ? {} : { "last-event-id": known };
    const response = await fetch(`/v1/events?${query}`, { headers, signal: stop, cache: "no-store" });
    if (response.status !== OK || response.body === null) return response.status;
    this.#steady = setTimeout(() => {
      this.#failures = 0;
      this.connection.fire("open");
    }, STEADY_MS);
    await readEvents(response.body, {
      event: (data) => this.#take(data),
      sign: () => this.#heard(),
      retry: (ms) => {
        this.#againMs = ms;
      },
    });
    return response.status;
  }

  /** Gives what to ask for, and what is known already in the form of the ids of events. */
  #wanted(): { query: URLSearchParams; known: string } {
    const cursors = new Map<string, Cursor | undefined>();
    for (const { session, cursor } of this.#followers)
      cursors.set(session, earlier(cursors, session, cursor));
    const known = [...cursors].flatMap(([session, cursor]) =>
      cursor === undefined ? [] : [`${cursors.size > 1 ? `${session}:` : ""}${cursor.epoch}.${cursor.seq}`],
    );
    return {
      query: new URLSearchParams({ sessions: [...cursors.keys()].join(",") }),
      known: known.join(" "),
    };
  }

  #take(data: string): void {
    this.#failures = 0;
    const { session, frame } = JSON.parse(data) as { session: string; frame: Frame };
    for (const follower of [...this.#followers]) {
      if (follower.session !== session) continue;
      follower.cursor = cursorOf(frame) ?? follower.cursor;
      follower.take(frame);
    }
  }

  #heard(): void {
    this.#heardAt = Date.now();
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => {
      this.connection.fire("lost");
      this.#open();
    }, WATCHDOG_MS);
  }
}

/** LSP's RequestCancelled. */
const CANCELLED = -32_800;

function earlier(
  cursors: ReadonlyMap<string, Cursor | undefined>,
  session: string,
  cursor: Cursor | undefined,
): Cursor | undefined {
  if (!cursors.has(session)) return cursor;
  const other = cursors.get(session);
  if (other === undefined || cursor === undefined || other.epoch !== cursor.epoch) return undefined;
  return other.seq < cursor.seq ? other : cursor;
}

function cursorOf(frame: Frame): Cursor | undefined {
  switch (frame.kind) {
    case "agent/snapshot":
      return { epoch: frame.epoch, seq: frame.seq };
    case "agent/events":
    case "agent/gap":
      return { epoch: frame.epoch, seq: frame.to };
    default:
      return undefined;
  }
}
