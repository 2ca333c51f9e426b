// The way to the server, as far as sessions need it.

import type { AgentNotifications, AgentRequests, ErrorData, Frame } from "../../shared/wire.js";
import type { Disposable } from "../signal.js";

export type Method = keyof AgentRequests;
export type ParamsOf<M extends Method> = AgentRequests[M]["params"];
export type ResultOf<M extends Method> = AgentRequests[M]["result"];

export interface AgentPort {
  /** Asks; throws an `AgentError` when the server refuses or is gone. Aborting cancels the request. */
  request<M extends Method>(method: M, params: ParamsOf<M>, abort?: AbortSignal): Promise<ResultOf<M>>;
  notify<M extends keyof AgentNotifications>(method: M, params: AgentNotifications[M]): Promise<void>;
  /** Listens to the frames of a token that this client chose. */
  onFrame(token: string, listener: (frame: Frame) => void): Disposable;
}

/** Where a request goes when no server serves. */
export class AgentError extends Error {
  readonly code: number;
  readonly data: Partial<ErrorData> | undefined;

  constructor(message: string, code: number, data?: Partial<ErrorData>) {
    super(message);
    this.name = "AgentError";
    this.code = code;
    this.data = data;
  }

  /** The server was exchanged while it worked on the request; the same request may be sent again. */
  get isRetriggered(): boolean {
    return this.code === SERVER_CANCELLED;
  }
}

export const NOT_SERVED = -32_097;
/** LSP's ServerCancelled. */
const SERVER_CANCELLED = -32_802;

/** Gives whatever was thrown the shape of an `AgentError`. */
export function asAgentError(thrown: unknown): AgentError {
  if (thrown instanceof AgentError) return thrown;
  const said = (typeof thrown === "object" && thrown !== null ? thrown : {}) as Partial<AgentError>;
  const message = typeof said.message === "string" ? said.message : String(thrown);
  const data = typeof said.data === "object" ? said.data : undefined;
  return new AgentError(message, typeof said.code === "number" ? said.code : NOT_SERVED, data);
}
