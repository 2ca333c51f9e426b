// The way to the server for the parts of the panel that follow sessions: requests by POST, frames by one event stream.

import {
  AgentError,
  type AgentPort,
  type Method,
  NOT_SERVED,
  type ParamsOf,
  type ResultOf,
} from "../host/agent/port.js";
import { type Disposable, Signal } from "../host/signal.js";
import type { ErrorData, Frame } from "../shared/wire.js";
import { EventStream } from "./stream.js";

/** Before a request that did not reach the server is sent again. */
const AGAIN_MS = [500, 2000];
const UNAUTHORIZED = 401;

interface Answer {
  result?: unknown;
  error?: { code?: number; message?: string; data?: Partial<ErrorData> };
}

export class WebPort implements AgentPort {
  readonly stream = new EventStream();
  /** Fires when the server does not take the cookie of this browser. */
  readonly signedOut = new Signal<void>();
  readonly #listeners = new Map<string, (frame: Frame) => void>();

  async request<M extends Method>(method: M, params: ParamsOf<M>, abort?: AbortSignal): Promise<ResultOf<M>> {
    if (method === "agent/subscribe") {
      const subscribed = await this.#subscribe(params as ParamsOf<"agent/subscribe">, abort);
      return subscribed as ResultOf<M>;
    }
    const response = await this.#post({ method, params: named(method, params) }, abort);
    const answer = await answerOf(response);
    if (response.status === UNAUTHORIZED) this.signedOut.fire();
    const { error } = answer;
    if (error !== undefined || !response.ok) {
      const why = error?.message ?? `The server answered with status ${response.status}.`;
      throw new AgentError(why, error?.code ?? NOT_SERVED, error?.data);
    }
    return answer.result as ResultOf<M>;
  }

  /** Nothing is told without being asked for: the page has no editor whose state could change. */
  async notify(): Promise<void> {
    await Promise.resolve();
  }

  onFrame(token: string, listener: (frame: Frame) => void): Disposable {
    this.#listeners.set(token, listener);
    return { dispose: () => this.#listeners.delete(token) };
  }

  async #subscribe(
    { session = "", partialResultToken, epoch, from }: ParamsOf<"agent/subscribe">,
    abort?: AbortSignal,
  ): Promise<ResultOf<"agent/subscribe">> {
    const cursor = epoch === undefined || from === undefined ? undefined : { epoch, seq: from };
    const take = (frame: Frame) => this.#listeners.get(String(partialResultToken))?.(frame);
    const reason = await this.stream.follow(session, cursor, take, abort);
    return { reason, last: 0 } as ResultOf<"agent/subscribe">;
  }

  /** Sends a request; one that may be repeated is sent again when the network failed, as it does on a phone. */
  async #post(body: { method: Method; params: object }, abort?: AbortSignal): Promise<Response> {
    const mayRepeat = isRepeatable(body);
    for (let attempt = 0; ; attempt += 1) {
      const pause = AGAIN_MS[attempt];
      try {
        return await fetch("/v1/rpc", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
          ...(abort && { signal: abort }),
        });
      } catch {
        if (abort?.aborted || !mayRepeat || pause === undefined)
          throw new AgentError("Tiller cannot be reached.", NOT_SERVED);
        await new Promise((go) => setTimeout(go, pause));
      }
    }
  }
}

/** Two tabs share what the server has open: each request names its session. */
function named(method: Method, params: object): object {
  return method === "agent/session/open" ? { session: "latest", ...params } : params;
}

const READS = /\/(list|read|open|status|costs|stats|tree|preview)$/;

/** A prompt has an id of its own and is taken once; a request that reads changes nothing. */
function isRepeatable({ method, params }: { method: string; params: object }): boolean {
  const isNew = "session" in params && params.session === "new";
  return "messageId" in params || (READS.test(method) && !isNew);
}

async function answerOf(response: Response): Promise<Answer> {
  try {
    return (await response.json()) as Answer;
  } catch {
    return {};
  }
}
