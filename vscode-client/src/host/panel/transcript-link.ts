// Keeps one panel in step with the session: a picture first, then every event after it, without a hole.

import type { ToPanel } from "../../shared/messages.js";
import type { AgentEvent } from "../../shared/wire.js";
import { asAgentError } from "../agent/port.js";
import type { FeedNews, SessionFeed } from "../agent/session-feed.js";
import type { Disposable } from "../signal.js";
import { Coalescer, realTimers, type Timers } from "./coalescer.js";

export class TranscriptLink {
  readonly #feed: SessionFeed;
  readonly #post: (message: ToPanel) => void;
  readonly #failed: (why: string) => void;
  readonly #coalescer: Coalescer;
  readonly #listening: Disposable;
  /** What came while a picture was on its way; undefined: none is. */
  #meanwhile: AgentEvent[] | undefined;
  #pictures = 0;
  #isShown = false;

  constructor(
    feed: SessionFeed,
    post: (message: ToPanel) => void,
    failed: (why: string) => void,
    timers: Timers = realTimers,
  ) {
    this.#feed = feed;
    this.#post = post;
    this.#failed = failed;
    this.#coalescer = new Coalescer((events) => this.#say(events), timers);
    this.#listening = feed.news.listen((news) => this.#hear(news));
  }

  /** Sends the session as it stands; nothing while none is open, since opening one sends it too. */
  async show(): Promise<void> {
    this.#isShown = true;
    if (this.#feed.session === undefined) return;
    this.#pictures += 1;
    const number = this.#pictures;
    this.#coalescer.clear();
    this.#meanwhile = [];
    try {
      const picture = await this.#feed.picture();
      if (number !== this.#pictures || picture === undefined) return;
      const { snapshot, items, prev } = picture;
      const { session, epoch, seq } = snapshot;
      this.#post({
        type: "snapshot",
        session,
        epoch,
        seq,
        snapshot,
        items,
        ...(prev === undefined ? {} : { prev }),
      });
      const missed: AgentEvent[] = this.#meanwhile.filter((one) => one.seq > seq);
      this.#meanwhile = undefined;
      this.#say(missed);
    } catch (thrown) {
      if (number !== this.#pictures) return;
      this.#meanwhile = undefined;
      this.#failed(asAgentError(thrown).message);
    }
  }

  dispose(): void {
    this.#listening.dispose();
    this.#coalescer.clear();
    this.#pictures += 1;
  }

  #hear(news: FeedNews): void {
    if (!this.#isShown) return;
    switch (news.kind) {
      case "events":
        this.#take(news.events);
        break;
      case "opened":
      case "reread":
        void this.show();
        break;
      case "unread":
      case "lost":
        this.#failed(news.why);
        break;
    }
  }

  #take(events: AgentEvent[]): void {
    if (this.#meanwhile !== undefined) this.#meanwhile.push(...events);
    else this.#coalescer.add(events);
    // What was said before is another branch now: it is read anew.
    if (events.some((one) => one.type === "leaf.moved")) void this.show();
  }

  #say(events: AgentEvent[]): void {
    const session = this.#feed.session;
    if (events.length > 0 && session !== undefined) this.#post({ type: "events", session, events });
  }
}
