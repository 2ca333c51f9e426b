// Shows a notification of the browser when a person is needed and the page is not seen.

import type { Overview } from "../host/agent/overview.js";
import { Signal } from "../host/signal.js";
import type { Notifications } from "../shared/messages.js";
import { oneLine } from "../webview/safe-text.js";
import { showByWorker } from "./worker-notification.js";

type Waiting = Overview["pending"][number];

const CHOICE = "tiller.notifications";
const BLOCKED =
  "The browser blocks notifications of this page. Allow them in its settings for this site, then try again.";
const NOT_SHOWN = "This browser shows no notifications of this page. They were turned off again.";

export class Notifier {
  /** Fires when `state` has changed. */
  readonly changed = new Signal<void>();
  /** What withdraws those that are shown, by the id of the request. */
  readonly #shown = new Map<string, () => void>();
  readonly #fail: (why: string) => void;
  /** Ids of the requests that waited at the last look. */
  #waiting: ReadonlySet<string> = new Set();

  /** @param fail Takes why a notification could not be shown. */
  constructor(fail: (why: string) => void) {
    this.#fail = fail;
  }

  /** Undefined: the browser has no notifications, or not for this page. */
  get state(): Notifications | undefined {
    if (!("Notification" in window) || !window.isSecureContext) return undefined;
    if (Notification.permission === "denied") return "blocked";
    return Notification.permission === "granted" && isChosen() ? "on" : "off";
  }

  /** Turns them on, for which the browser may ask the user, or off; gives why that could not be done. To be called in a click. */
  async turn(on: boolean): Promise<string | undefined> {
    const isAllowed = !on || (await Notification.requestPermission()) === "granted";
    choose(on && isAllowed);
    if (!on) this.show([], "");
    this.changed.fire();
    return isAllowed ? undefined : BLOCKED;
  }

  /** Shows requests that are new, and withdraws those that were answered. */
  show(waiting: readonly Waiting[], session: string): void {
    const before = this.#waiting;
    this.#waiting = new Set(waiting.map((one) => one.request));
    for (const [request, withdraw] of this.#shown) {
      if (this.#waiting.has(request)) continue;
      withdraw();
      this.#shown.delete(request);
    }
    if (document.visibilityState === "visible" || this.state !== "on") return;
    for (const one of waiting) if (!before.has(one.request)) this.#open(one, session);
  }

  #open(asked: Waiting, session: string): void {
    const { request } = asked;
    const title = session || "Tiller";
    const body = "title" in asked ? oneLine(asked.title) : "Tiller asks you a question.";
    const options = { body, tag: request, icon: "/assets/icon-192.png" };
    try {
      const shown = new Notification(title, options);
      shown.addEventListener("click", () => {
        window.focus();
        shown.close();
      });
      this.#shown.set(request, () => shown.close());
    } catch {
      // Chrome on Android takes them from a worker only.
      void this.#openByWorker(request, title, options);
    }
  }

  async #openByWorker(request: string, title: string, options: NotificationOptions): Promise<void> {
    try {
      const withdraw = await showByWorker(title, options);
      if (this.#waiting.has(request)) this.#shown.set(request, withdraw);
      else withdraw();
    } catch {
      choose(false);
      this.#fail(NOT_SHOWN);
      this.changed.fire();
    }
  }
}

function isChosen(): boolean {
  return localStorage.getItem(CHOICE) === "on";
}

function choose(on: boolean): void {
  if (on) localStorage.setItem(CHOICE, "on");
  else localStorage.removeItem(CHOICE);
}
