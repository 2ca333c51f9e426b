// A headless Chromium whose processes are known, and what pages in it have shown.
import { readdir, readFile } from "node:fs/promises";
import { type Browser, type BrowserServer, chromium, type Page } from "playwright-core";

const CHROMIUM = process.env["TILLER_E2E_CHROMIUM"] ?? "/usr/bin/chromium";

export class Chromium {
  readonly browser: Browser;
  readonly #server: BrowserServer;

  private constructor(server: BrowserServer, browser: Browser) {
    this.#server = server;
    this.browser = browser;
  }

  /** @param proxy Its address; connections to this machine go through it too. */
  static async start({ proxy, args = [] }: { proxy?: string; args?: string[] } = {}): Promise<Chromium> {
    const throughProxy = proxy ? [`--proxy-server=${proxy}`, "--proxy-bypass-list=<-loopback>"] : [];
    const server = await chromium.launchServer({
      executablePath: CHROMIUM,
      args: ["--no-sandbox", "--disable-dev-shm-usage", ...throughProxy, ...args],
    });
    return new Chromium(server, await chromium.connect(server.wsEndpoint()));
  }

  /** Stops all of its processes, as a laptop that sleeps does, or lets them go on. */
  async signal(name: "SIGSTOP" | "SIGCONT"): Promise<void> {
    for (const pid of await tree(this.#server.process().pid ?? 0)) process.kill(pid, name);
  }

  async stop(): Promise<void> {
    await this.#server.close();
  }
}

/** Collects what a page complains of, but for requests that failed. */
export function faultsOf(page: Page): string[] {
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    const isNetwork = /Failed to load resource|net::ERR/.test(message.text());
    if (message.type() === "error" && !isNetwork) faults.push(message.text());
  });
  return faults;
}

/** Gives the ids of a process and of all that it started. */
async function tree(root: number): Promise<number[]> {
  const parents = new Map<number, number>();
  for (const name of await readdir("/proc")) {
    const status = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, "utf8").catch(() => "") : "";
    const parent = /^\d+ \(.*\) \S (\d+)/s.exec(status)?.[1];
    if (parent !== undefined) parents.set(Number(name), Number(parent));
  }
  const found = [root];
  for (const one of found) for (const [pid, parent] of parents) if (parent === one) found.push(pid);
  return found;
}
