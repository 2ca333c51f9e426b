// Speaks with the extension: sends, asks, and gives each answer to whoever asked.

import type { Answer, Found, Gathered, RequestFailure, ToHost, ToPanel } from "../shared/messages.js";
import type { PanelMethod } from "../shared/methods.js";
import type { AgentRequests, Block, JsonValue } from "../shared/wire.js";

interface VsCode {
  postMessage(message: ToHost): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare function acquireVsCodeApi(): VsCode;

/** A request that was not granted; `kind` is one of the server's words. */
export class Refused extends Error {
  readonly kind: string | undefined;
  readonly hint: string | undefined;

  constructor(failure: RequestFailure) {
    super(failure.message);
    this.name = "Refused";
    this.kind = failure.kind;
    this.hint = failure.hint;
  }
}

interface Waiter {
  resolve(result: unknown): void;
  reject(error: Refused): void;
}

/** What the panel keeps when it is hidden or loaded anew: the words that are being written, and a choice of the composer. */
export interface Kept {
  draft: string;
  /** Whether the user left the editor's context out of prompts. */
  withoutContext: boolean;
}

export class Host {
  readonly #api: VsCode = acquireVsCodeApi();
  readonly #waiting = new Map<number, Waiter>();
  #lastId = 0;

  /** Gives every message but answers, which go to whoever asked. */
  listen(take: (message: Exclude<ToPanel, Answer>) => void): void {
    window.addEventListener("message", (event: MessageEvent<ToPanel>) => {
      const message = event.data;
      if (message.type === "answer") this.#answer(message);
      else take(message);
    });
  }

  post(message: ToHost): void {
    this.#api.postMessage(message);
  }

  /**
   * Asks the server.
   *
   * Rejects with `Refused` when it says no.
   */
  request<M extends PanelMethod>(method: M, params: object): Promise<AgentRequests[M]["result"]> {
    const asked = this.#ask((id) => ({
      type: "request",
      id,
      method,
      params: params as { [key: string]: JsonValue },
    }));
    return asked as Promise<AgentRequests[M]["result"]>;
  }

  async find(type: "findFiles" | "findSymbols", query: string): Promise<Found[]> {
    const answer = (await this.#ask((id) => ({ type, id, query }))) as { items: Found[] };
    return answer.items;
  }

  /** Collects parts of a prompt; rejects with `Refused` when there are none. */
  async gather(what: Gathered): Promise<Block[]> {
    const answer = (await this.#ask((id) => ({ type: "gather", id, what }))) as { blocks: Block[] };
    return answer.blocks;
  }

  /** Has a web page fetched as parts of a prompt; rejects with `Refused` when it cannot be. */
  async readPage(url: string): Promise<Block[]> {
    const answer = (await this.#ask((id) => ({ type: "readPage", id, url }))) as { blocks: Block[] };
    return answer.blocks;
  }

  /** Gives the document of a plan as the user edited it; nothing when it is not open. */
  async editedPlan(sha256: string): Promise<string | undefined> {
    const answer = (await this.#ask((id) => ({ type: "editedPlan", id, sha256 }))) as { text?: string };
    return answer.text;
  }

  kept(): Kept {
    const kept = this.#api.getState() as Partial<Kept> | undefined;
    return {
      draft: typeof kept?.draft === "string" ? kept.draft : "",
      withoutContext: kept?.withoutContext === true,
    };
  }

  keep(kept: Kept): void {
    this.#api.setState(kept);
  }

  #ask(message: (id: number) => ToHost): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.post(message(id));
    });
  }

  #answer(message: Answer): void {
    const waiter = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.error) waiter?.reject(new Refused(message.error));
    else waiter?.resolve(message.result);
  }
}
