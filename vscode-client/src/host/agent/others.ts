// Sessions of this window that are not in front, for as long as they work, ask, or have changes to review.

import type { AgentEvent } from "../../shared/wire.js";
import { Signal } from "../signal.js";
import type { Overview } from "./overview.js";
import type { AgentPort } from "./port.js";
import { type FeedNews, SessionFeed } from "./session-feed.js";
import { Watch } from "./watch.js";

/** So many are followed; of more the oldest are let go. */
const MOST = 16;

/** How a run ended in a session that is not in front. */
export interface RunEnd {
  overview: Overview;
  event: Extract<AgentEvent, { type: "run.ended" }>;
}

/** Where the ids are kept, so that a reloaded window knows them. */
export interface Memory {
  get(): readonly string[];
  set(ids: readonly string[]): void;
}

interface Followed {
  feed: SessionFeed;
  watch: Watch;
}

export class Others {
  /** Fires when one of them changed, came or went. */
  readonly changed = new Signal<void>();
  readonly ended = new Signal<RunEnd>();
  /** What happens in them, by session. */
  readonly news = new Signal<{ session: string; news: FeedNews }>();
  readonly #port: AgentPort;
  readonly #memory: Memory;
  readonly #pause: ((ms: number) => Promise<void>) | undefined;
  readonly #followed = new Map<string, Followed>();
  /** Sessions in which a run ended and that were not in front since, also those that are followed no more. */
  readonly #unread = new Set<string>();
  #front: string | undefined;

  constructor(port: AgentPort, front: SessionFeed, memory: Memory, pause?: (ms: number) => Promise<void>) {
    this.#port = port;
    this.#memory = memory;
    this.#pause = pause;
    front.news.listen((news) => {
      if (news.kind === "opened") this.#arrived(news.snapshot.session);
    });
  }

  /** The pictures of those that are known, the one that was left last at the end. */
  get all(): readonly Overview[] {
    return [...this.#followed.values()].flatMap(({ watch }) => watch.now ?? []);
  }

  get unread(): readonly string[] {
    return [...this.#unread];
  }

  /** Follows again what the window followed before a server went, or before it was reloaded. */
  again(): void {
    const ids = new Set([...this.#memory.get(), ...this.#followed.keys()]);
    for (const id of [...this.#followed.keys()]) this.#leave(id);
    for (const id of ids) if (id !== this.#front) this.#follow(id);
  }

  dispose(): void {
    for (const { feed } of this.#followed.values()) feed.dispose();
    this.#followed.clear();
  }

  #arrived(session: string): void {
    const left = this.#front;
    if (left === session) return;
    this.#front = session;
    this.#unread.delete(session);
    this.#leave(session);
    if (left !== undefined) this.#follow(left);
    this.changed.fire();
  }

  #follow(session: string): void {
    if (this.#followed.has(session)) return;
    const feed = new SessionFeed(this.#port, this.#pause, `tiller-beside-${session}`);
    const followed = { feed, watch: new Watch(feed) };
    this.#followed.set(session, followed);
    feed.news.listen((news) => this.#hear(session, followed, news));
    feed.beside(session);
    const [oldest] = this.#followed.keys();
    if (this.#followed.size > MOST && oldest !== undefined) this.#leave(oldest);
    this.#remember();
  }

  #hear(session: string, followed: Followed, news: FeedNews): void {
    if (this.#followed.get(session) !== followed) return;
    const overview = followed.watch.now;
    this.news.fire({ session, news });
    if (news.kind === "events" && overview !== undefined)
      for (const event of news.events) {
        if (event.type !== "run.ended") continue;
        this.#unread.add(session);
        this.ended.fire({ overview, event });
      }
    // What is quiet and reviewed begins nothing by itself.
    if (news.kind === "lost" || (overview !== undefined && isQuiet(overview))) this.#leave(session);
    this.changed.fire();
  }

  #leave(session: string): void {
    const followed = this.#followed.get(session);
    if (followed === undefined) return;
    this.#followed.delete(session);
    followed.feed.dispose();
    this.#remember();
  }

  #remember(): void {
    this.#memory.set([...this.#followed.keys()]);
  }
}

function isQuiet({ run, state, pending, unreviewed }: Overview): boolean {
  return (
    run === undefined && pending.length === 0 && unreviewed === 0 && (state === "idle" || state === "error")
  );
}
