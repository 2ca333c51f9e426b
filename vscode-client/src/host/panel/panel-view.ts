// The view in the side bar: its page, and the messages that go in and out.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Compose, Hello, OtherSession, Place, ToHost, ToPanel } from "../../shared/messages.js";
import type { Overview } from "../agent/overview.js";
import { Signal } from "../signal.js";
import { page } from "./html.js";

export const VIEW = "tiller.panel";
const NONCE_BYTES = 18;

export interface PanelParts {
  extension: vscode.Uri;
  /** How the extension stands now. */
  hello: () => Hello;
  /** Takes each message of the panel, in order. */
  hear: (message: ToHost) => void;
}

export class PanelView implements vscode.WebviewViewProvider {
  /** Fires when the panel is shown or hidden. */
  readonly visibility = new Signal<boolean>();
  readonly #parts: PanelParts;
  #view: vscode.WebviewView | undefined;
  #isReady = false;
  /** What must not be lost while the page is being built. */
  #waiting: ToPanel[] = [];

  constructor(parts: PanelParts) {
    this.#parts = parts;
  }

  get isVisible(): boolean {
    return this.#view?.visible === true;
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    this.#isReady = false;
    const dist = vscode.Uri.joinPath(this.#parts.extension, "dist");
    const media = vscode.Uri.joinPath(this.#parts.extension, "media");
    view.webview.options = { enableScripts: true, localResourceRoots: [dist, media] };
    view.webview.onDidReceiveMessage((message: unknown) => this.#hear(message));
    view.onDidChangeVisibility(() => this.visibility.fire(view.visible));
    view.onDidDispose(() => {
      // The page may have been built anew before the old one goes.
      if (this.#view !== view) return;
      this.#view = undefined;
      this.#isReady = false;
      this.visibility.fire(false);
    });
    const address = (name: string) => view.webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
    view.webview.html = page({
      nonce: randomBytes(NONCE_BYTES).toString("base64url"),
      source: view.webview.cspSource,
      script: address("panel.js"),
      style: address("panel.css"),
      language: vscode.env.language,
    });
    this.visibility.fire(true);
  }

  /** Sends a message; one about the session is dropped while no page is there to show it, since it gets a picture then. */
  post(message: ToPanel): void {
    if (this.#isReady) void this.#view?.webview.postMessage(message);
  }

  sayHello(): void {
    this.post(this.#parts.hello());
  }

  /** Opens the panel and puts something into the composer; waits for the page if it must be built. */
  async compose(message: Omit<Compose, "type">): Promise<void> {
    await this.#reveal({ type: "compose", ...message });
  }

  async show(what: Place, focus?: string): Promise<void> {
    await this.#reveal({ type: "show", what, ...(focus === undefined ? {} : { focus }) });
  }

  tellOthers(others: readonly Overview[]): void {
    const sessions = others.map(
      ({ session, title, run, pending, unreviewed }): OtherSession => ({
        session,
        ...(title === undefined ? {} : { title }),
        doing: pending.length > 0 ? "asks" : run === undefined ? "idle" : "works",
        unreviewed,
      }),
    );
    this.post({ type: "others", sessions });
  }

  /** Says how much waits for the user, on the icon. */
  badge(count: number, tooltip: string): void {
    if (this.#view !== undefined) this.#view.badge = count > 0 ? { value: count, tooltip } : undefined;
  }

  async #reveal(message: ToPanel): Promise<void> {
    if (!this.#isReady) this.#waiting.push(message);
    await vscode.commands.executeCommand(`${VIEW}.focus`);
    if (this.#isReady && !this.#waiting.includes(message)) this.post(message);
  }

  #hear(message: unknown): void {
    if (!isMessage(message)) return;
    this.#parts.hear(message);
    if (message.type !== "ready") return;
    this.#isReady = true;
    this.sayHello();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const one of waiting) this.post(one);
  }
}

function isMessage(message: unknown): message is ToHost {
  return (
    typeof message === "object" && message !== null && "type" in message && typeof message.type === "string"
  );
}
