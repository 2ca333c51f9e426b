// The panel: its page in the side bar and perhaps in an editor tab, and the messages that go in and out.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Compose, Hello, OtherSession, Place, ToHost, ToPanel } from "../../shared/messages.js";
import type { Overview } from "../agent/overview.js";
import { Signal } from "../signal.js";
import { page } from "./html.js";

const LEFT = "tiller.panel";
const RIGHT = "tiller.panelRight";
const TAB = "tiller.panelTab";
/** Since this version extensions may bring views for the secondary side bar. */
const SECONDARY_SINCE = [1, 106] as const;
const NONCE_BYTES = 18;

/** Says whether this VS Code shows views of extensions in the secondary side bar. */
export function hasSecondarySideBar(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > SECONDARY_SINCE[0] || (major === SECONDARY_SINCE[0] && minor >= SECONDARY_SINCE[1]);
}

export interface PanelParts {
  extension: vscode.Uri;
  /** How the extension stands now. */
  hello: () => Hello;
  /** Takes each message of a page, in order; answers go to that page alone. */
  hear: (message: ToHost, answer: (message: ToPanel) => void, page: object) => void;
  /** Forgets a page that is closed. */
  left: (page: object) => void;
}

/** A page that shows the panel. */
interface Page {
  webview: vscode.Webview;
  isVisible: () => boolean;
  isReady: boolean;
}

export class PanelView implements vscode.WebviewViewProvider, vscode.WebviewPanelSerializer {
  /** Fires when the panel is shown or hidden. */
  readonly visibility = new Signal<boolean>();
  readonly #parts: PanelParts;
  readonly #id = hasSecondarySideBar(vscode.version) ? RIGHT : LEFT;
  readonly #pages = new Set<Page>();
  #view: vscode.WebviewView | undefined;
  #tab: { panel: vscode.WebviewPanel; page: Page } | undefined;
  #title = "";
  /** What must not be lost while the page is being built. */
  #waiting: ToPanel[] = [];

  constructor(parts: PanelParts) {
    this.#parts = parts;
  }

  /** Registers the view and the tab, which comes back when the window is loaded anew. */
  register(): vscode.Disposable[] {
    const options = { webviewOptions: { retainContextWhenHidden: true } };
    // Not the other way round: the view is there at once where it may be, and so it comes back with the window.
    void vscode.commands.executeCommand("setContext", "tiller.noSecondarySideBar", this.#id === LEFT);
    return [
      vscode.window.registerWebviewViewProvider(this.#id, this, options),
      vscode.window.registerWebviewPanelSerializer(TAB, this),
    ];
  }

  get isVisible(): boolean {
    return [...this.#pages].some((one) => one.isVisible());
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    view.title = this.#title || "Tiller";
    const built = this.#build(view.webview, () => view.visible);
    view.onDidChangeVisibility(() => this.visibility.fire(this.isVisible));
    view.onDidDispose(() => {
      // The page may have been built anew before the old one goes.
      if (this.#view === view) this.#view = undefined;
      this.#leave(built);
    });
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel): Promise<void> {
    this.#take(panel);
  }

  /** Opens the panel as a tab of the editor, beside the text; one that is open comes to the front. */
  openInEditor(): void {
    if (this.#tab !== undefined) {
      this.#tab.panel.reveal();
      return;
    }
    const options = { enableScripts: true, retainContextWhenHidden: true };
    this.#take(vscode.window.createWebviewPanel(TAB, "Tiller", vscode.ViewColumn.Beside, options));
  }

  /** Sends a message; one about the session is dropped while no page is there to show it, since it gets a picture then. */
  post(message: ToPanel): void {
    for (const one of this.#pages) if (one.isReady) void one.webview.postMessage(message);
  }

  sayHello(): void {
    this.post(this.#parts.hello());
  }

  /** Opens the panel and puts something into the composer; waits for the page if it must be built. */
  async compose(message: Omit<Compose, "type">): Promise<void> {
    await this.#reveal({ type: "compose", ...message });
  }

  async show(what: Place, more: { focus?: string; find?: true } = {}): Promise<void> {
    await this.#reveal({ type: "show", what, ...more });
  }

  tellOthers(others: readonly Overview[], unread: readonly string[]): void {
    const sessions = others.map(
      ({ session, title, run, pending, unreviewed }): OtherSession => ({
        session,
        ...(title === undefined ? {} : { title }),
        doing: pending.length > 0 ? "asks" : run === undefined ? "idle" : "works",
        unreviewed,
      }),
    );
    this.post({ type: "others", sessions, unread });
  }

  /** Says how much waits for the user, on the icon. */
  badge(count: number, tooltip: string): void {
    if (this.#view !== undefined) this.#view.badge = count > 0 ? { value: count, tooltip } : undefined;
  }

  /** Names the session in the title of the view and of the tab; empty: it has no name yet. */
  titled(title: string): void {
    this.#title = title;
    if (this.#view !== undefined) this.#view.title = title || "Tiller";
    if (this.#tab !== undefined) this.#tab.panel.title = title ? `Tiller: ${title}` : "Tiller";
  }

  #take(panel: vscode.WebviewPanel): void {
    panel.iconPath = vscode.Uri.joinPath(this.#parts.extension, "media", "tiller.svg");
    const built = this.#build(panel.webview, () => panel.visible);
    this.#tab = { panel, page: built };
    this.titled(this.#title);
    panel.onDidChangeViewState(() => this.visibility.fire(this.isVisible));
    panel.onDidDispose(() => {
      if (this.#tab?.panel === panel) this.#tab = undefined;
      this.#leave(built);
    });
  }

  #build(webview: vscode.Webview, isVisible: () => boolean): Page {
    const built: Page = { webview, isVisible, isReady: false };
    this.#pages.add(built);
    const dist = vscode.Uri.joinPath(this.#parts.extension, "dist");
    const media = vscode.Uri.joinPath(this.#parts.extension, "media");
    webview.options = { enableScripts: true, localResourceRoots: [dist, media] };
    webview.onDidReceiveMessage((message: unknown) => this.#hear(built, message));
    const address = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
    webview.html = page({
      nonce: randomBytes(NONCE_BYTES).toString("base64url"),
      source: webview.cspSource,
      script: address("panel.js"),
      style: address("panel.css"),
      language: vscode.env.language,
    });
    this.visibility.fire(true);
    return built;
  }

  #leave(built: Page): void {
    this.#pages.delete(built);
    this.#parts.left(built);
    this.visibility.fire(this.isVisible);
  }

  /** Shows the tab where it is the one in sight, else the view, and gives it the message. */
  async #reveal(message: ToPanel): Promise<void> {
    const tab = this.#tab;
    if (tab?.panel.visible === true && this.#view?.visible !== true && tab.page.isReady) {
      tab.panel.reveal();
      void tab.page.webview.postMessage(message);
      return;
    }
    const isReady = () => [...this.#pages].some((one) => one.isReady && one.webview === this.#view?.webview);
    if (!isReady()) this.#waiting.push(message);
    await vscode.commands.executeCommand(`${this.#id}.focus`);
    if (isReady() && !this.#waiting.includes(message)) void this.#view?.webview.postMessage(message);
  }

  #hear(from: Page, message: unknown): void {
    if (!isMessage(message)) return;
    this.#parts.hear(message, (answer) => void from.webview.postMessage(answer), from);
    if (message.type !== "ready") return;
    from.isReady = true;
    void from.webview.postMessage(this.#parts.hello());
    if (from.webview !== this.#view?.webview) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const one of waiting) void from.webview.postMessage(one);
  }
}

function isMessage(message: unknown): message is ToHost {
  return (
    typeof message === "object" && message !== null && "type" in message && typeof message.type === "string"
  );
}
