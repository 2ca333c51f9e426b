// The scripted provider on the loopback device: what the model says, and what it was asked.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** One answer of the model; the fields are those of `tests/support/provider/script.py`. */
export interface Turn {
  text?: string;
  thinking?: string;
  tool_calls?: { name: string; arguments: unknown; pieces?: number }[];
  deltas?: number;
  delta_delay_s?: number;
  delay_s?: number;
  when?: string;
  repeat?: number;
  status?: number;
  body?: unknown;
  usage?: { input: number; output: number };
}

interface Asked {
  method: string;
  finished: boolean;
  /** With the length of each credential in its place. */
  headers: Record<string, string>;
  body: unknown;
}

export class Provider {
  readonly origin: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, origin: string) {
    this.#child = child;
    this.origin = origin;
  }

  /** Starts one; it ends with `stop`, or when this process does. `words` go to its command line. */
  static async start(python: string, repository: string, words: readonly string[] = []): Promise<Provider> {
    const argv = ["-m", "tests.support.provider", "--until-eof", ...words];
    const child = spawn(python, argv, { cwd: repository, stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout });
    const [line] = (await once(lines, "line")) as [string];
    const { port } = JSON.parse(line) as { port: number };
    return new Provider(child, `http://127.0.0.1:${port}`);
  }

  /** Replaces what is left of the script. */
  async script(...turns: Turn[]): Promise<void> {
    const answer = await fetch(`${this.origin}/_ctl/script`, { method: "POST", body: JSON.stringify(turns) });
    if (!answer.ok) throw new Error(await answer.text());
  }

  /** Gives what the model was sent so far, request by request, each as text. */
  async asked(): Promise<string[]> {
    return (await this.#log(1)).map((one) => JSON.stringify(one.body));
  }

  /** Gives the headers of the newest request. */
  async headers(): Promise<Record<string, string>> {
    return (await this.#log(0)).at(-1)?.headers ?? {};
  }

  /** Tells whether the newest answer has been sent whole. */
  async isDone(): Promise<boolean> {
    return (await this.#log(0)).at(-1)?.finished ?? false;
  }

  async #log(bodies: 0 | 1): Promise<Asked[]> {
    const answer = await fetch(`${this.origin}/_ctl/log?since=0&bodies=${bodies}`);
    return ((await answer.json()) as Asked[]).filter((one) => one.method === "POST");
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}
