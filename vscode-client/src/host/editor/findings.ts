// Reviews of the user's changes: asked for, followed and stopped.

import * as vscode from "vscode";
import type { ReviewMessage } from "../../shared/messages.js";
import type { Frame } from "../../shared/wire.js";
import { type AgentPort, asAgentError } from "../agent/port.js";
import type { SessionFeed } from "../agent/session-feed.js";

/** Stands in the place of what the server said of a suggestion. */
const APPLIED = { applied: true };

/** What a review needs of the window. */
export interface ReviewParts {
  port: AgentPort & { cancelProgress(token: string): Promise<void> };
  feed: SessionFeed;
  post: (message: ReviewMessage) => void;
  show: () => Promise<void>;
}

export class Findings {
  readonly #parts: ReviewParts;
  #now: ReviewMessage | undefined;
  #token: string | undefined;
  #tokens = 0;

  constructor(parts: ReviewParts) {
    this.#parts = parts;
  }

  /** Tells the panel what there is, after its page was built anew. */
  tell(): void {
    if (this.#now !== undefined) this.#parts.post(this.#now);
  }

  /** Asks what to compare with, and reviews that; while one goes on it is shown instead. */
  async review(): Promise<void> {
    if (this.#token !== undefined) return this.#parts.show();
    const chosen = await chosenBase();
    if (chosen === undefined || this.#token !== undefined) return;
    const { base } = chosen;
    const order = base === undefined ? {} : { base };
    this.#tokens += 1;
    this.#token = `tiller-review-${this.#tokens}`;
    this.#say({ ...order, doing: "The review begins…" });
    await this.#parts.show();
    try {
      this.#say({ ...order, ...(await this.#asked(order, this.#token)) });
    } finally {
      this.#token = undefined;
    }
  }

  /** Ends the review that goes on with what it has. */
  async stop(): Promise<void> {
    if (this.#token !== undefined) await this.#parts.port.cancelProgress(this.#token);
  }

  /** Tells the panel that the suggestion of a finding is in the text now. */
  applied(uri: string, message: string): void {
    if (this.#now?.result?.findings === undefined) return;
    const findings = this.#now.result.findings.map((one) =>
      one.uri === uri && one.diagnostic.message === message
        ? { ...one, diagnostic: { ...one.diagnostic, data: APPLIED } }
        : one,
    );
    this.#now = { ...this.#now, result: { ...this.#now.result, findings } };
    this.tell();
  }

  async #asked(order: { base?: string }, token: string): Promise<Pick<ReviewMessage, "result" | "problem">> {
    const { port, feed } = this.#parts;
    const line = port.onFrame(token, (frame) => {
      const doing = progressOf(frame);
      if (doing !== undefined) this.#say({ ...order, doing });
    });
    try {
      const session = feed.session === undefined ? {} : { session: feed.session };
      return { result: await port.request("agent/review", { ...session, ...order, workDoneToken: token }) };
    } catch (thrown) {
      const { message, data } = asAgentError(thrown);
      const problem = data?.happened ?? message;
      return { problem: data?.hint === undefined ? problem : `${problem} ${data.hint}` };
    } finally {
      line.dispose();
    }
  }

  #say(review: Omit<ReviewMessage, "type">): void {
    this.#now = { type: "review", ...review };
    this.#parts.post(this.#now);
  }
}

/** The line of a review comes by the same way as the frames of a session. */
function progressOf(frame: Frame | { kind: string; message?: unknown }): string | undefined {
  return frame.kind === "report" && "message" in frame && typeof frame.message === "string"
    ? frame.message
    : undefined;
}

type Choice = vscode.QuickPickItem & { base?: string; other?: true };

async function chosenBase(): Promise<{ base?: string } | undefined> {
  const choices: Choice[] = [
    { label: "Uncommitted changes", description: "includes untracked files" },
    { label: "Everything since main", description: "what this branch brings", base: "main" },
    { label: "Everything since another branch or commit…", other: true },
  ];
  const chosen = await vscode.window.showQuickPick(choices, {
    title: "Review",
    placeHolder: "What do you want to review?",
  });
  if (chosen === undefined) return undefined;
  if (chosen.other === undefined) return chosen.base === undefined ? {} : { base: chosen.base };
  const base = await vscode.window.showInputBox({
    title: "Review",
    prompt: "A branch, tag or commit: what came after it is looked at",
    placeHolder: "origin/main",
  });
  return base?.trim() ? { base: base.trim() } : undefined;
}
