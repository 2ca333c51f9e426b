// Stands for the extension in a browser: takes the messages of the panel, and answers them over the web channel.

import { asAgentError } from "../host/agent/port.js";
import { SessionFeed } from "../host/agent/session-feed.js";
import { Watch } from "../host/agent/watch.js";
import { failure, PanelRequests } from "../host/panel/requests.js";
import { TaskLinks } from "../host/panel/task-links.js";
import { TranscriptLink } from "../host/panel/transcript-link.js";
import type { HostState, RequestFailure, Role, ToHost, ToPanel, WebPlace } from "../shared/messages.js";
import { Commands } from "./commands.js";
import { copy, openLink } from "./device.js";
import { signIn } from "./login.js";
import { Notifier } from "./notifier.js";
import { WebPort } from "./port.js";
import type { Connection } from "./stream.js";

const SIGNED_OUT =
  "This browser is not signed in. Run `tiller web` in a terminal and open the address that it prints.";
const LOST = "The connection to Tiller is lost. This page connects again by itself.";
/** A connection that comes back sooner is not worth a word. */
const PATIENCE_MS = 2000;
const NO_EDITOR: RequestFailure = { message: "Only an editor can collect this." };

type Asked = Extract<ToHost, { type: "findFiles" | "findSymbols" | "gather" | "readPage" | "editedPlan" }>;

export class PageHost {
  readonly #port = new WebPort();
  readonly #feed = new SessionFeed(this.#port);
  readonly #watch = new Watch(this.#feed);
  readonly #requests = new PanelRequests(this.#port, this.#feed);
  readonly #notifier = new Notifier((why) => this.#notice(why));
  readonly #tasks = new TaskLinks(this.#port, (why) => this.#notice(why));
  readonly #post: (message: ToPanel) => void;
  readonly #link: TranscriptLink;
  readonly #commands: Commands;
  #state: HostState = { ready: false, doing: "Connecting…" };
  #role: Role | undefined;
  #title = "";
  #lost: ReturnType<typeof setTimeout> | undefined;

  /** @param post Takes the messages for the panel. */
  constructor(post: (message: ToPanel) => void) {
    this.#post = post;
    this.#link = new TranscriptLink(this.#feed, post, (why) => this.#notice(why));
    this.#commands = new Commands(this.#port, this.#feed, post);
    this.#feed.news.listen((news) => {
      if (news.kind === "opened") rememberSession(news.snapshot.session);
    });
    this.#watch.changed.listen(({ now }) => {
      this.#showTitle();
      this.#notifier.show(now.pending, this.#title);
    });
    this.#notifier.changed.listen(() => this.#hello());
    this.#port.roleChanged.listen((role) => {
      this.#role = role;
      this.#hello();
    });
    this.#port.signedOut.listen(() => this.#say({ ready: false, problem: { text: SIGNED_OUT } }));
    this.#port.stream.connection.listen((connection) => this.#connected(connection));
  }

  /** Takes one message of the panel; what goes wrong is told in the answer or by a notice. */
  async hear(message: ToHost): Promise<void> {
    try {
      await this.#act(message);
    } catch (thrown) {
      this.#notice(asAgentError(thrown).message);
    }
  }

  async #act(message: ToHost): Promise<void> {
    switch (message.type) {
      case "ready":
        return this.#start();
      case "request":
        return this.#post({ type: "answer", id: message.id, ...(await this.#requests.answer(message)) });
      case "findFiles":
      case "findSymbols":
      case "gather":
      case "readPage":
      case "editedPlan":
        return this.#answerWithoutEditor(message);
      case "followTask":
        return this.#followTask(message);
      case "titled":
        this.#title = message.title;
        return this.#showTitle();
      case "notify":
        return this.#notify(message.on);
      case "visit":
        return this.#visit(message.place);
      case "command":
        return this.#commands.run(message.command, message.args ?? []);
      default:
        return this.#show(message);
    }
  }

  async #show(
    message: Extract<
      ToHost,
      {
        type:
          | "open"
          | "openLink"
          | "openTerminal"
          | "diff"
          | "copy"
          | "insert"
          | "editPlan"
          | "trust"
          | "diffTask";
      }
    >,
  ): Promise<void> {
    switch (message.type) {
      case "open":
      case "diff":
        return this.#commands.showFile(message.uri);
      case "openLink":
        return openLink(message.url);
      case "copy":
        return copy(message.text);
      case "trust":
        return this.#notice("Folders are trusted in a terminal: tiller trust add DIR");
      case "insert":
      case "editPlan":
      case "openTerminal":
        return this.#notice("This needs an editor.");
      case "diffTask":
        // The page beside it shows the same lines.
        return;
    }
  }

  async #visit(what: WebPlace): Promise<void> {
    await import("./places/elements.js");
    this.#post({ type: "show", what });
  }

  async #notify(on: boolean): Promise<void> {
    const problem = await this.#notifier.turn(on);
    if (problem !== undefined) this.#notice(problem);
  }

  async #start(): Promise<void> {
    this.#hello();
    await signIn();
    const wanted = rememberedSession();
    // Shows the session as soon as it is open.
    await this.#link.show();
    try {
      await this.#open(wanted ?? "latest");
    } catch (thrown) {
      const problem = { text: failure(thrown).message };
      // What is said already, such as how to sign in, says more.
      if (this.#state.problem === undefined) this.#say({ ready: false, problem });
      return;
    }
    this.#say({ ready: true });
  }

  /** Opens a session; one that is gone gives way to the newest. */
  async #open(which: string): Promise<void> {
    try {
      await this.#feed.open(which);
    } catch (thrown) {
      if (which === "latest" || asAgentError(thrown).data?.kind !== "SessionNotFound") throw thrown;
      await this.#feed.open("latest");
    }
  }

  #answerWithoutEditor(message: Asked): void {
    const { id, type } = message;
    if (type === "gather" || type === "readPage") this.#post({ type: "answer", id, error: NO_EDITOR });
    else this.#post({ type: "answer", id, result: type === "editedPlan" ? {} : { items: [] } });
  }

  #followTask({ session, isRunning }: Extract<ToHost, { type: "followTask" }>): void {
    if (session === undefined) this.#tasks.leave(this);
    else this.#tasks.follow(this, session, { isRunning: isRunning === true }, this.#post);
  }

  #connected(connection: Connection): void {
    clearTimeout(this.#lost);
    if (connection === "open") this.#say({ ready: true });
    else if (connection === "signedOut") this.#say({ ready: false, problem: { text: SIGNED_OUT } });
    else this.#lost = setTimeout(() => this.#say({ ready: true, problem: { text: LOST } }), PATIENCE_MS);
  }

  #say(state: HostState): void {
    this.#state = state;
    this.#hello();
  }

  #hello(): void {
    const windowFocused = document.hasFocus();
    const state = this.#state;
    const notifications = this.#notifier.state;
    this.#post({
      ...{ type: "hello", state, windowFocused, trusted: true, folders: [], host: "web" },
      ...(this.#role !== undefined && { role: this.#role }),
      ...(notifications !== undefined && { notifications }),
    });
  }

  /** Names the session, and how many questions wait, where a person looks for it among other tabs. */
  #showTitle(): void {
    const waiting = this.#watch.now?.pending.length ?? 0;
    const name = this.#title === "" ? "Tiller" : `${this.#title} · Tiller`;
    document.title = waiting > 0 ? `(${waiting}) ${name}` : name;
  }

  #notice(text: string): void {
    this.#post({ type: "notice", level: "warning", text });
  }
}

/** The session of an address, so that a page that is loaded anew, or a bookmark, shows the same one. */
function rememberedSession(): string | undefined {
  const id = new URLSearchParams(location.hash.slice(1)).get("session");
  return id === null || id === "" ? undefined : id;
}

function rememberSession(session: string): void {
  history.replaceState(null, "", `#${new URLSearchParams({ session })}`);
}
