// What the panel asks of the server: only methods of the list, only as much as the server takes, always for the session shown.

import type { PanelRequest, RequestFailure } from "../../shared/messages.js";
import { isPanelMethod, takesSession } from "../../shared/methods.js";
import type { Block } from "../../shared/wire.js";
import { type AgentPort, asAgentError } from "../agent/port.js";
import type { SessionFeed } from "../agent/session-feed.js";

/** The server closes a connection that sends a bigger frame: such words are refused before they go out. */
const MOST_BYTES = 24 * 1024 * 1024;

export type Reply = { result: unknown } | { error: RequestFailure };

export class PanelRequests {
  readonly #port: AgentPort;
  readonly #feed: SessionFeed;

  constructor(port: AgentPort, feed: SessionFeed) {
    this.#port = port;
    this.#feed = feed;
  }

  async answer(request: PanelRequest): Promise<Reply> {
    const { method, params } = request;
    if (!isPanelMethod(method)) return { error: { message: `The panel may not ask for ${String(method)}.` } };
    const bytes = new TextEncoder().encode(JSON.stringify(params ?? {})).length;
    if (bytes > MOST_BYTES) return { error: tooBig(bytes) };
    try {
      if (method === "agent/session/open") {
        const which = typeof params["session"] === "string" ? params["session"] : undefined;
        return { result: await this.#feed.open(which) };
      }
      const session = this.#feed.session ?? (await this.#feed.open()).session;
      const full = takesSession(method) ? { session, ...params } : { ...params };
      return { result: await this.#port.request(method, full as never) };
    } catch (thrown) {
      return { error: failure(thrown) };
    }
  }

  /** Has the server fetch a web page and store its text. Returns it as parts of a prompt. */
  async page(url: string): Promise<Block[]> {
    // The same method stores files of the disk, which the panel must not name.
    if (!/^https?:/i.test(url))
      throw new Error(`${url} is no URL of a web page; it begins with https:// or http://.`);
    const stored = await this.#port.request("agent/blob/store", { uri: url });
    return [{ type: "file", ...stored, name: stored.name ?? url }];
  }
}

function tooBig(bytes: number): RequestFailure {
  const megabytes = (bytes / 1024 / 1024).toFixed(0);
  return {
    message: `This is ${megabytes} MB, more than the server takes at once.`,
    hint: "Save it as a file of the workspace, and name the file.",
  };
}

export function failure(thrown: unknown): RequestFailure {
  const error = asAgentError(thrown);
  const { kind, hint, happened } = error.data ?? {};
  return {
    message: happened ?? error.message,
    ...(kind === undefined ? {} : { kind }),
    ...(hint === undefined ? {} : { hint }),
  };
}
