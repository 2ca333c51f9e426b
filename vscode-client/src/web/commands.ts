// The commands of the panel that need no editor.

import type { AgentPort } from "../host/agent/port.js";
import type { SessionFeed } from "../host/agent/session-feed.js";
import type { PanelCommand } from "../shared/commands.js";
import type { ToPanel } from "../shared/messages.js";
import type { JsonValue, Mode } from "../shared/wire.js";
import { Attachments } from "./attachments.js";
import { save } from "./device.js";

type Act = (args: readonly JsonValue[]) => Promise<void>;

export class Commands {
  readonly #port: AgentPort;
  readonly #feed: SessionFeed;
  readonly #post: (message: ToPanel) => void;
  readonly #attachments: Attachments;
  readonly #acts: Readonly<Partial<Record<PanelCommand, Act>>> = {
    "tiller.newSession": async () => {
      await this.#feed.open("new");
      this.#post({ type: "compose", focus: true });
    },
    "tiller.stop": async () => {
      await this.#port.request("agent/run/cancel", { ...this.#session(), scope: "session", queue: "keep" });
    },
    "tiller.chooseMode": async ([mode]) => {
      await this.#port.request("agent/session/configure", {
        ...this.#session(),
        set: { mode: mode as Mode },
      });
    },
    "tiller.attachFile": () => this.#attachments.choose(),
    "tiller.rejectAll": () => this.#rejectAll(),
    "tiller.exportMarkdown": async () => {
      const asked = { ...this.#session(), format: "markdown" as const };
      const { content } = await this.#port.request("agent/session/export", asked);
      save("session.md", content);
    },
    "tiller.showChanges": async () => this.#post({ type: "show", what: "changes" }),
  };

  constructor(port: AgentPort, feed: SessionFeed, post: (message: ToPanel) => void) {
    this.#port = port;
    this.#feed = feed;
    this.#post = post;
    this.#attachments = new Attachments(post);
  }

  async run(command: PanelCommand, args: readonly JsonValue[]): Promise<void> {
    const act = this.#acts[command];
    if (act === undefined) throw new Error("This needs an editor or a terminal.");
    await act(args);
  }

  /** Shows the changes of a file; one that the session did not change is on the machine, not in this page. */
  async showFile(uri: string): Promise<void> {
    const { files } = await this.#port.request("agent/changes/list", this.#session());
    if (files.some((one) => one.uri === uri)) this.#post({ type: "show", what: "changes", focus: uri });
    else
      this.#post({
        type: "notice",
        level: "info",
        text: `${name(uri)} has no changes of this session. Open it in an editor.`,
      });
  }

  async #rejectAll(): Promise<void> {
    const { id, files } = await this.#port.request("agent/changes/list", this.#session());
    const waiting = files.filter((one) => one.hunks.some((hunk) => hunk.state === "pending"));
    const names = waiting.map((one) => name(one.uri)).join(", ");
    if (waiting.length === 0 || !window.confirm(`Reject the changes of this session? Files: ${names}`))
      return;
    const items = [{ changeSet: id, action: "reject" as const }];
    const { results } = await this.#port.request("agent/changes/resolve", { ...this.#session(), items });
    const left = results.filter((one) => one.status === "conflict").length;
    if (left > 0)
      this.#post({
        type: "notice",
        level: "warning",
        text: `Not rejected, because the lines were edited since: ${left}`,
      });
  }

  #session(): { session: string } {
    const { session } = this.#feed;
    if (session === undefined) throw new Error("No session is open.");
    return { session };
  }
}

function name(uri: string): string {
  return decodeURIComponent(uri.split("/").at(-1) ?? uri);
}
