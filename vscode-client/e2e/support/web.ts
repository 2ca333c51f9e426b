// `tiller web` as a program, and a script that asks it.
import type { ChildProcess } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { ARTEFACTS, type Ground, TILLER } from "./ground.ts";
import { end, start } from "./processes.ts";
import { until } from "./until.ts";

export class Web {
  /** Where its page is. */
  readonly origin: string;
  /** The page with the one-off token. */
  readonly address: string;
  readonly #ground: Ground;
  readonly #child: ChildProcess;

  private constructor(ground: Ground, child: ChildProcess, address: string) {
    this.#ground = ground;
    this.#child = child;
    this.address = address;
    this.origin = new URL(address).origin;
  }

  /** Starts it and waits for the address that it prints; what it says goes to the log `name`. */
  static async start(ground: Ground, name: string, words: readonly string[] = []): Promise<Web> {
    const log = join(ARTEFACTS, `${name}.log`);
    const argv = [TILLER, "web", "--no-open", ...(words.includes("--port") ? [] : ["--port", "0"]), ...words];
    const child = start({ argv: argv as [string, ...string[]], env: ground.env, cwd: ground.folder, log });
    const address = await until("the address is printed", async () => {
      const text = await readFile(log, "utf8").catch(() => "");
      return /http:\/\/127\.0\.0\.1:\d+\/\?token=\S+/.exec(text)?.[0];
    });
    return new Web(ground, child, address);
  }

  get port(): string {
    return new URL(this.origin).port;
  }

  signal(name: NodeJS.Signals): void {
    if (this.#child.pid !== undefined) process.kill(this.#child.pid, name);
  }

  /** Sends a request of the agent as a script does, and gives its result. */
  async ask(method: string, params: object): Promise<unknown> {
    const file = join(String(this.#ground.env["TILLER_RUNTIME_DIR"]), `web-${this.port}.token`);
    const token = (await readFile(file, "utf8")).trim();
    const answer = await fetch(`${this.origin}/v1/rpc`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({ method, params }),
    });
    const { result, error } = (await answer.json()) as { result?: unknown; error?: { message: string } };
    if (error !== undefined) throw new Error(error.message);
    return result;
  }

  async stop(): Promise<void> {
    await end(this.#child);
  }
}

/** The session that a page shows. */
export function sessionOf(page: Page): string {
  return new URLSearchParams(new URL(page.url()).hash.slice(1)).get("session") ?? "";
}
