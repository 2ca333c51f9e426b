// The one way to the server of this window: starts it, starts it again when it ends, and says how that stands.

import * as vscode from "vscode";
import { type LanguageClient, ProgressType, State } from "vscode-languageclient/node";
import type { HostState, Problem } from "../../shared/messages.js";
import type { AgentNotifications, AgentServerCaps, Frame } from "../../shared/wire.js";
import {
  AgentError,
  type AgentPort,
  asAgentError,
  type Method,
  NOT_SERVED,
  type ParamsOf,
  type ResultOf,
} from "../agent/port.js";
import { type Disposable, Signal } from "../signal.js";
import type { Launch } from "./find.js";
import type { Served } from "./language-client.js";
import { Restarts } from "./restarts.js";

/** The major version that this extension speaks. */
const PROTOCOL = "1";
const START_MS = 30_000;
const LAST_WORDS_MS = 1_000;

export type Prepared =
  | { kind: "launch"; launch: Launch; folder: string }
  | { kind: "problem"; problem: Problem };

export interface DaemonParts {
  /** Finds the server, and installs it if need be; says meanwhile what it does. */
  prepare: (doing: (text: string | undefined) => void) => Promise<Prepared>;
  client: (launch: Launch, folder: string, ended: (why: string) => void) => Served;
  log: vscode.LogOutputChannel;
}

export class Daemon implements AgentPort {
  /** The state after each change. */
  readonly changed = new Signal<HostState>();
  /** Each client before it starts: the place to answer what the server asks. */
  readonly made = new Signal<LanguageClient>();
  /** What the server can do, whenever one begins to serve. */
  readonly serving = new Signal<AgentServerCaps>();
  readonly #parts: DaemonParts;
  readonly #restarts = new Restarts();
  #state: HostState = { ready: false };
  #client: LanguageClient | undefined;
  /** Ends the process of the client that serves or starts. */
  #kill: () => void = () => undefined;
  #served: Launch | undefined;
  #starting: Promise<void> | undefined;
  #again: NodeJS.Timeout | undefined;
  #lastWords = "";

  constructor(parts: DaemonParts) {
    this.#parts = parts;
  }

  get state(): HostState {
    return this.#state;
  }

  /** The program that serves, or served last. */
  get launch(): Launch | undefined {
    return this.#served;
  }

  /** Starts unless it serves or is starting. A failure is told by the state, not thrown. */
  start(): Promise<void> {
    if (this.#state.ready) return Promise.resolve();
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  /** Ends what serves and starts anew; the user asked for it. */
  async restart(): Promise<void> {
    this.#restarts.forgive();
    clearTimeout(this.#again);
    // One that is stuck in its start is not waited for.
    if (!this.#state.ready) this.#kill();
    await this.#starting;
    await this.#end();
    await this.start();
  }

  async dispose(): Promise<void> {
    clearTimeout(this.#again);
    await this.#end();
  }

  async request<M extends Method>(method: M, params: ParamsOf<M>, abort?: AbortSignal): Promise<ResultOf<M>> {
    const client = await this.#ready();
    const source = new vscode.CancellationTokenSource();
    const cancel = () => source.cancel();
    if (abort?.aborted) cancel();
    abort?.addEventListener("abort", cancel);
    try {
      return await client.sendRequest<ResultOf<M>>(method, params, source.token);
    } catch (thrown) {
      throw asAgentError(thrown);
    } finally {
      abort?.removeEventListener("abort", cancel);
      source.dispose();
    }
  }

  async notify<M extends keyof AgentNotifications>(method: M, params: AgentNotifications[M]): Promise<void> {
    if (this.#state.ready) await this.#client?.sendNotification(method, params);
  }

  /** Asks for the end of something that shows its progress. */
  async cancelProgress(token: string): Promise<void> {
    if (this.#state.ready) await this.#client?.sendNotification("window/workDoneProgress/cancel", { token });
  }

  onFrame(token: string, listener: (frame: Frame) => void): Disposable {
    const none = { dispose: () => undefined };
    return this.#client?.onProgress(new ProgressType<Frame>(), token, listener) ?? none;
  }

  /** Waits for a start that is under way: a prompt typed early is not lost. */
  async #ready(): Promise<LanguageClient> {
    if (!this.#state.ready) await this.start();
    const client = this.#client;
    if (this.#state.ready && client !== undefined) return client;
    throw new AgentError(this.#state.problem?.text ?? "The Tiller server is not running.", NOT_SERVED);
  }

  async #start(): Promise<void> {
    this.#say({ ready: false });
    try {
      const prepared = await this.#parts.prepare((doing) =>
        this.#say(doing === undefined ? { ready: false } : { ready: false, doing }),
      );
      if (prepared.kind === "problem") this.#say({ ready: false, problem: prepared.problem });
      else await this.#launch(prepared.launch, prepared.folder);
    } catch (thrown) {
      this.#fail(asAgentError(thrown).message);
    }
  }

  async #launch(launch: Launch, folder: string): Promise<void> {
    const { log } = this.#parts;
    log.info(`Starting ${[launch.command, ...launch.base, "lsp", ...launch.words].join(" ")}`);
    this.#served = launch;
    this.#lastWords = "";
    let over: () => void = () => undefined;
    const ended = new Promise<void>((done) => {
      over = done;
    });
    const { client, kill } = this.#parts.client(launch, folder, (why) => {
      this.#lastWords = why;
      over();
    });
    this.#client = client;
    this.#kill = kill;
    this.made.fire(client);
    try {
      await within(START_MS, client.start());
    } catch (thrown) {
      log.error(`The server did not start: ${asAgentError(thrown).message}`);
      // A server that cannot start mostly says why, a moment later.
      await within(LAST_WORDS_MS, ended).catch(() => undefined);
      kill();
      await client.dispose().catch(() => undefined);
      const why = this.#lastWords || asAgentError(thrown).message;
      this.#fail(`The server ${launch.command} did not start (${why}).`);
      return;
    }
    const problem = unfit(client, launch);
    if (problem !== undefined) {
      await this.#end();
      this.#say({ ready: false, problem });
      return;
    }
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Stopped && this.#client === client) this.#ended();
    });
    this.#say({ ready: true });
    this.serving.fire(capabilityOf(client) as AgentServerCaps);
  }

  /** It ended although nobody wanted that. */
  #ended(): void {
    this.#client = undefined;
    const pause = this.#restarts.next();
    const why = this.#lastWords || "without a word";
    this.#parts.log.warn(`The server ended: ${why}`);
    if (pause === undefined) {
      this.#fail(`The server of Tiller keeps ending (${why}).`);
      return;
    }
    this.#say({ ready: false, doing: "The server ended and is started again…" });
    this.#again = setTimeout(() => void this.start(), pause);
  }

  async #end(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#say({ ready: false });
    if (client === undefined) return;
    await client.dispose().catch((thrown: unknown) => this.#parts.log.warn(asAgentError(thrown).message));
    this.#kill();
  }

  #fail(text: string): void {
    this.#client = undefined;
    this.#say({ ready: false, problem: { text, action: { title: "Show Log", command: "tiller.showLog" } } });
  }

  #say(state: HostState): void {
    this.#state = state;
    this.changed.fire(state);
  }
}

/** Says why a server that answered cannot serve this extension. */
function unfit(client: LanguageClient, launch: Launch): Problem | undefined {
  const said = capabilityOf(client);
  const action = { title: "Open Settings", command: "tiller.openSettings" } as const;
  if (said?.protocol === undefined) {
    const text = `${launch.command} is a language server, but none of Tiller: it says nothing of an agent.`;
    return { text, action };
  }
  if (said.protocol.split(".")[0] === PROTOCOL && said.v === Number(PROTOCOL)) return undefined;
  const text = `The server ${launch.command} speaks protocol ${said.protocol}, this extension ${PROTOCOL}.x. Update the older of the two.`;
  return { text, action };
}

function capabilityOf(client: LanguageClient): Partial<AgentServerCaps> | undefined {
  const experimental = client.initializeResult?.capabilities.experimental as
    | { agent?: Partial<AgentServerCaps> }
    | undefined;
  return experimental?.agent;
}

function within(ms: number, work: Promise<void>): Promise<void> {
  return new Promise((done, fail) => {
    const late = () => fail(new Error(`it did not answer within ${ms / 1000} s`));
    const timer = setTimeout(late, ms);
    work.then(done, fail).finally(() => clearTimeout(timer));
  });
}
