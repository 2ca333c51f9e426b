// Gathers events for a moment: a message to a webview costs far more than what is in it.

import type { AgentEvent } from "../../shared/wire.js";

/** Measured with 20,000 deltas: one message for each takes 50 s, gathered so they take 2 s. */
export const GATHER_MS = 30;

export interface Timers {
  after(ms: number, act: () => void): { cancel(): void };
}

export const realTimers: Timers = {
  after: (ms, act) => {
    const timer = setTimeout(act, ms);
    return { cancel: () => clearTimeout(timer) };
  },
};

export class Coalescer {
  readonly #flushed: (events: AgentEvent[]) => void;
  readonly #timers: Timers;
  #waiting: AgentEvent[] = [];
  #timer: { cancel(): void } | undefined;

  /** @param flushed Takes what was gathered, in order. */
  constructor(flushed: (events: AgentEvent[]) => void, timers: Timers = realTimers) {
    this.#flushed = flushed;
    this.#timers = timers;
  }

  add(events: readonly AgentEvent[]): void {
    if (events.length === 0) return;
    for (const event of events) this.#waiting.push(event);
    this.#timer ??= this.#timers.after(GATHER_MS, () => this.flush());
  }

  /** Gives what was gathered now. */
  flush(): void {
    const events = this.#waiting;
    this.clear();
    if (events.length > 0) this.#flushed(events);
  }

  /** Forgets what was gathered. */
  clear(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#waiting = [];
  }
}
