// The way to the server for the parts of the panel that follow sessions: requests by POST, frames by one event stream.

import {
  AgentError,
  type AgentPort,
  asAgentError,
  type Method,
  NOT_SERVED,
  type ParamsOf,
  type ResultOf,
} from "../host/agent/port.js";
import { type Disposable, Signal } from "../host/signal.js";
import { ROLES, type Role } from "../shared/messages.js";
import type { ErrorData, Frame } from "../shared/wire.js";
import { EventStream } from "./stream.js";

/** Before a request that did not reach the agent is sent again. */
const AGAIN_MS: readonly number[] = [500, 2000, 5000];
const UNREACHABLE = -32_099;
const UNAUTHORIZED = 401;

interface Answer {
  result?: unknown;
  error?: { code?: number; message?: string; data?: Partial<ErrorData> };
}

export class WebPort implements AgentPort {
  readonly stream = new EventStream();
  /** Fires when the server does not take the cookie of this browser. */
  readonly signedOut = new Signal<void>();
  /** Fires when the server names other rights of this page than before. */
  readonly roleChanged = new Signal<Role>();
  #role: Role | undefined;
  readonly #listeners = new Map<string, (frame: Frame) => void>();

  async request<M extends Method>(method: M, params: ParamsOf<M>, abort?: AbortSignal): Promise<ResultOf<M>> {
    if (method === "agent/subscribe") {
      const subscribed = await this.#subscribe(params as ParamsOf<"agent/subscribe">, abort);
      return subscribed as ResultOf<M>;
    }
    const body = { method, params: named(method, params) };
    const pauses = isRepeatable(body) ? AGAIN_MS : [];
    for (let attempt = 0; ; attempt += 1) {
      try {
        return (await this.#post(body, abort)) as ResultOf<M>;
      } catch (thrown) {
        const pause = pauses[attempt];
        if (pause === undefined || abort?.aborted || !isPassing(asAgentError(thrown))) throw thrown;
        await new Promise((go) => setTimeout(go, pause));
      }
    }
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

  /** Sends a request once. */
  async #post(body: { method: Method; params: object }, abort?: AbortSignal): Promise<unknown> {
    const response = await fetch("/v1/rpc", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      ...(abort && { signal: abort }),
    }).catch(() => {
      throw new AgentError("Tiller cannot be reached.", UNREACHABLE);
    });
    this.#hearRole(response.headers.get("tiller-role"));
    const { result, error } = await answerOf(response);
    if (response.status === UNAUTHORIZED) this.signedOut.fire();
    if (error === undefined && response.ok) return result;
    const why = error?.message ?? `The server answered with status ${response.status}.`;
    throw new AgentError(why, error?.code ?? NOT_SERVED, error?.data);
  }

  #hearRole(name: string | null): void {
    const role = ROLES.find((one) => one === name);
    if (role === undefined || role === this.#role) return;
    this.#role = role;
    this.roleChanged.fire(role);
  }
}

/** The network failed, or the daemon was exchanged meanwhile: the same request may be taken now. */
function isPassing(error: AgentError): boolean {
  return error.code === UNREACHABLE || error.isRetriggered;
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
