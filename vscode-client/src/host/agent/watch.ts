// Keeps the small picture of the session that is followed, and tells of each change.

import { Signal } from "../signal.js";
import { after, type Overview, overviewOf } from "./overview.js";
import type { SessionFeed } from "./session-feed.js";

export class Watch {
  /** The picture after each change, and the one before. */
  readonly changed = new Signal<{ now: Overview; before: Overview | undefined }>();
  #now: Overview | undefined;

  constructor(feed: SessionFeed) {
    feed.news.listen((news) => {
      if (news.kind === "opened") this.#take(overviewOf(news.snapshot));
      else if (news.kind === "events" && this.#now !== undefined)
        this.#take(news.events.reduce(after, this.#now));
    });
  }

  get now(): Overview | undefined {
    return this.#now;
  }

  #take(now: Overview): void {
    const before = this.#now;
    if (now === before) return;
    this.#now = now;
    this.changed.fire({ now, before });
  }
}
