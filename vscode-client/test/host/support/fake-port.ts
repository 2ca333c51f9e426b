// A server of a test's own: what it answers is given by method, and its frames are sent by hand.

import type { AgentPort, Method } from "../../../src/host/agent/port.js";
import type { AgentEvent, Frame, Snapshot } from "../../../src/shared/wire.js";

type Reply = (params: Record<string, unknown>, abort?: AbortSignal) => unknown;

export class FakePort implements AgentPort {
  readonly asked: { method: string; params: Record<string, unknown> }[] = [];
  readonly replies = new Map<string, Reply>();
  readonly tokens = new Map<string, (frame: Frame) => void>();

  on(method: Method, reply: Reply): this {
    this.replies.set(method, reply);
    return this;
  }

  async request(method: string, params: unknown, abort?: AbortSignal): Promise<never> {
    const given = params as Record<string, unknown>;
    this.asked.push({ method, params: given });
    const reply = this.replies.get(method);
    if (reply === undefined) throw new Error(`nobody answers ${method}`);
    return (await reply(given, abort)) as never;
  }

  async notify(): Promise<void> {
    await Promise.resolve();
  }

  onFrame(token: string, listener: (frame: Frame) => void): { dispose(): void } {
    this.tokens.set(token, listener);
    return { dispose: () => this.tokens.delete(token) };
  }

  /** Sends a frame to the newest subscription. */
  send(frame: Frame): void {
    [...this.tokens.values()].at(-1)?.(frame);
  }
}

/** Stays open until it is aborted, as a subscription does. */
export function untilAborted(
  _params: unknown,
  abort?: AbortSignal,
): Promise<{ reason: string; last: number }> {
  return new Promise((done) => {
    abort?.addEventListener("abort", () => done({ reason: "closed", last: 0 }));
  });
}

export function snapshot(more: Partial<Snapshot> = {}): Snapshot {
  return {
    session: "s1",
    epoch: "e1",
    seq: 4,
    state: "idle",
    queue: [],
    pending: [],
    config: {
      model: "lab/m",
      thinking: "medium",
      mode: "ask",
      autoCompact: true,
      steering: "all",
      followUp: "all",
      tools: [],
      offerBranchSummary: true,
    },
    usage: {
      context: { used: 1000, size: 10_000 },
      tokens: { in: 1, out: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
    },
    roots: [],
    trust: [],
    changes: { files: 0, additions: 0, deletions: 0, unreviewed: 0 },
    checkpoints: { count: 0 },
    clients: [],
    history: { cursor: null },
    ...more,
  };
}

export function delta(seq: number, text = "x"): AgentEvent {
  return { seq, at: "2026-11-22T00:00:00.000Z", run: "r", item: "i", type: "message.delta", text };
}

export function frame(from: number, to: number, epoch = "e1"): Frame {
  const events = Array.from({ length: to - from + 1 }, (_, place) => delta(from + place));
  return { kind: "agent/events", session: "s1", epoch, from, to, events };
}

/** Lets everything that waits for nothing go on. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
}
