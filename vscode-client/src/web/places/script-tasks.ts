// The tasks that scripts began over the task API: how each stands, a way to cancel it, and to its session.

import { html, nothing } from "lit";
import { oneLine } from "../../webview/safe-text.js";
import { icon, spinner } from "../../webview/view/parts.js";
import { agoText } from "../../webview/words.js";
import { ask } from "./api.js";
import { PlaceElement, type View } from "./place.js";

type State = "queued" | "running" | "waiting" | "done" | "failed" | "cancelled";

interface ScriptTask {
  task: string;
  session: string;
  state: State;
  reason: string | null;
  createdAt: string;
  prompt: string;
}

interface Page {
  tasks: ScriptTask[];
  next: string | null;
}

const ICONS: Readonly<Record<State, string>> = {
  queued: "watch",
  running: "loading codicon-modifier-spin",
  waiting: "bell-dot",
  done: "check",
  failed: "error",
  cancelled: "circle-slash",
};
const UNENDED: readonly State[] = ["queued", "running", "waiting"];
/** Between two looks at tasks that have not ended. */
const AGAIN_MS = 3000;
const PAGE = 20;
/** What one request may ask for. */
const MOST = 100;

export class ScriptTasks extends PlaceElement {
  #tasks: ScriptTask[] | undefined;
  #next: string | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  disconnectedCallback(): void {
    clearTimeout(this.#timer);
  }

  protected begin(): void {
    void this.attempt(() => this.#read());
  }

  protected view(): View {
    const tasks = this.#tasks;
    if (tasks === undefined) return this.isBusy ? html`<div class="pad">${spinner()}</div>` : nothing;
    if (tasks.length === 0)
      return html`<div class="empty dim">No tasks yet. A script creates one with POST /api/tasks.</div>`;
    return html`<div role="list" aria-label="Tasks for scripts">${tasks.map((one) => this.#entry(one))}</div>
      ${this.#next ? html`<button type="button" class="secondary wide" ?disabled=${this.isBusy} @click=${() => this.attempt(() => this.#more())}>Show more</button>` : nothing}`;
  }

  /** Reads the tasks that are shown, and goes on while one of them has not ended. */
  async #read(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      const limit = Math.min(MOST, Math.max(PAGE, this.#tasks?.length ?? 0));
      this.#take([], await ask<Page>(`/api/tasks?limit=${limit}`));
    } finally {
      this.#readAgain();
    }
  }

  async #more(): Promise<void> {
    const query = new URLSearchParams({ limit: String(PAGE), cursor: this.#next ?? "" });
    this.#take(this.#tasks ?? [], await ask<Page>(`/api/tasks?${query}`));
  }

  #take(before: ScriptTask[], { tasks, next }: Page): void {
    this.#tasks = [...before, ...tasks];
    this.#next = next;
  }

  #readAgain(): void {
    const isDue = this.#tasks?.some((one) => UNENDED.includes(one.state)) ?? true;
    if (!isDue || !this.isConnected) return;
    this.#timer = setTimeout(() => {
      if (document.visibilityState === "visible") void this.attempt(() => this.#read());
      else this.#readAgain();
    }, AGAIN_MS);
  }

  #cancel(task: string): void {
    void this.attempt(async () => {
      await ask(`/api/tasks/${task}/cancel`, {});
      await this.#read();
    });
  }

  #entry({ task, session, state, reason, createdAt, prompt }: ScriptTask): View {
    const title = oneLine(prompt) || "Task";
    const open = () => this.dispatchEvent(new CustomEvent("open-session", { detail: session }));
    const canCancel = UNENDED.includes(state) && this.may("approver");
    return html`<div class="entry" role="listitem">
      <button type="button" class="entry-main" title="Open its session" @click=${open}>
        <span class="entry-title clip">${icon(ICONS[state])} ${title}</span>
        <span class="entry-detail dim">${state}${reason ? `: ${oneLine(reason)}` : ""} · ${agoText(createdAt, Date.now())}</span>
      </button>
      ${canCancel ? html`<button type="button" class="secondary" aria-label=${`Cancel ${title}`} @click=${() => this.#cancel(task)}>Cancel</button>` : nothing}
    </div>`;
  }
}
