// The sessions of tasks that pages of the panel have open: followed while the task runs, else read once.

import type { TaskMessage, ToPanel } from "../../shared/messages.js";
import { type AgentPort, asAgentError } from "../agent/port.js";
import { SessionFeed } from "../agent/session-feed.js";
import { TranscriptLink } from "./transcript-link.js";

/** How many items are read at once. */
const PAGE = 200;

type Post = (message: ToPanel) => void;

export class TaskLinks {
  readonly #port: AgentPort;
  readonly #failed: (why: string) => void;
  readonly #pause: ((ms: number) => Promise<void>) | undefined;
  /** What ends the link of a page. */
  readonly #links = new Map<object, () => void>();

  constructor(port: AgentPort, failed: (why: string) => void, pause?: (ms: number) => Promise<void>) {
    this.#port = port;
    this.#failed = failed;
    this.#pause = pause;
  }

  /** Follows the session of a task for a page, instead of the one before. */
  follow(page: object, session: string, { isRunning }: { isRunning: boolean }, post: Post): void {
    this.leave(page);
    const end = isRunning ? this.#subscribe(session, post) : this.#read(session, post);
    this.#links.set(page, end);
  }

  leave(page: object): void {
    this.#links.get(page)?.();
    this.#links.delete(page);
  }

  dispose(): void {
    for (const page of [...this.#links.keys()]) this.leave(page);
  }

  #subscribe(session: string, post: Post): () => void {
    const feed = new SessionFeed(this.#port, this.#pause, `tiller-task-${session}`);
    const link = new TranscriptLink(
      feed,
      (message) => post(message.type === "snapshot" ? taskMessage(message) : message),
      this.#failed,
    );
    void link.show();
    feed.beside(session);
    return () => {
      link.dispose();
      feed.dispose();
    };
  }

  #read(session: string, post: Post): () => void {
    const page = { isLeft: false };
    const tell = (message: Omit<TaskMessage, "type" | "session">) => {
      if (!page.isLeft) post({ type: "task", session, ...message });
    };
    this.#port.request("agent/session/read", { session, limit: PAGE }).then(
      ({ items, prev }) => tell({ items, ...(prev === undefined ? {} : { prev }) }),
      (thrown: unknown) => tell({ items: [], problem: asAgentError(thrown).message }),
    );
    return () => {
      page.isLeft = true;
    };
  }
}

function taskMessage({
  session,
  epoch,
  seq,
  snapshot,
  items,
  prev,
}: Extract<ToPanel, { type: "snapshot" }>): TaskMessage {
  const live = { epoch, seq, snapshot };
  return { type: "task", session, live, items: items ?? [], ...(prev === undefined ? {} : { prev }) };
}
