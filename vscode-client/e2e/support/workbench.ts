// A real VS Code without a screen: its server, its extensions, and the windows that look at it.
import type { ChildProcess } from "node:child_process";
import { appendFileSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { ARTEFACTS, type Ground, REPOSITORY, TILLER } from "./ground.ts";
import { end, run, start } from "./processes.ts";
import { until } from "./until.ts";
import { WIDTH, Window } from "./window.ts";

const CODE =
  process.env["TILLER_E2E_WORKBENCH"] ??
  join(REPOSITORY, ".venv/workbench/node_modules/code-server/out/node/entry.js");
const CHROMIUM = process.env["TILLER_E2E_CHROMIUM"] ?? "/usr/bin/chromium";
const QUIET = {
  "chat.disableAIFeatures": true,
  "chat.commandCenter.enabled": false,
  "editor.minimap.enabled": false,
  // What a terminal shows is text of the page then.
  "terminal.integrated.gpuAcceleration": "off",
  // In a browser the default is to save after a second; on a desktop nothing is.
  "files.autoSave": "off",
  "git.openRepositoryInParentFolders": "never",
  "security.workspace.trust.startupPrompt": "never",
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.colorTheme": "Default Dark Modern",
};
const SIZE = { width: WIDTH, height: 900 };

export interface Choice {
  ground: Ground;
  /** The name under which its logs are kept. */
  name: string;
  vsix: string;
  /** Settings of the user; those of the extension that belong to the machine among them. */
  settings?: Record<string, unknown>;
  trust?: "all" | "asked";
  env?: NodeJS.ProcessEnv;
}

/** The extension uses the server of this checkout, instead of the one that it brings. */
export const OF_CHECKOUT = { "tiller.server.path": TILLER };

export class Workbench {
  readonly origin: string;
  readonly #child: ChildProcess;
  readonly #browser: Browser;
  readonly #folder: string;
  readonly #user: string;
  readonly #name: string;

  private constructor(child: ChildProcess, browser: Browser, origin: string, { ground, name }: Choice) {
    this.#name = name;
    this.#child = child;
    this.#browser = browser;
    this.origin = origin;
    this.#folder = ground.folder;
    this.#user = userOf(ground);
  }

  /** Installs the extension into a profile of its own, and starts VS Code on the folder. */
  static async start(choice: Choice): Promise<Workbench> {
    const { ground } = choice;
    await mkdir(ARTEFACTS, { recursive: true });
    const [user, extensions] = [userOf(ground), join(ground.base, "x")];
    await writeSettings(user, { ...QUIET, ...choice.settings });
    const env = { ...ground.env, ...choice.env };
    const options = ["--user-data-dir", user, "--extensions-dir", extensions] as const;
    const code = [process.execPath, CODE, ...options] as const;
    await run([...code, "--install-extension", choice.vsix], { env, cwd: ground.base });
    const port = await freePort();
    const child = start({
      argv: [
        ...code,
        ...["--auth", "none", "--bind-addr", `127.0.0.1:${port}`],
        ...["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"],
        ...(choice.trust === "asked" ? [] : ["--disable-workspace-trust"]),
      ],
      env,
      cwd: ground.base,
      log: join(ARTEFACTS, `${choice.name}.workbench.log`),
    });
    const origin = `http://127.0.0.1:${port}`;
    const args = ["--no-sandbox", "--disable-dev-shm-usage"];
    const browser = await chromium.launch({ executablePath: CHROMIUM, args });
    await until("VS Code listens", () =>
      fetch(`${origin}/healthz`).then(
        (answer) => answer.ok,
        () => false,
      ),
    );
    return new Workbench(child, browser, origin, choice);
  }

  /** Opens a window on the folder, in a browser profile of its own, and waits until it can be used. */
  async open(
    query: Record<string, string> = { folder: this.#folder },
    { scheme = "dark" }: { scheme?: "dark" | "light" } = {},
  ): Promise<Window> {
    const context = await this.#browser.newContext({ viewport: SIZE, colorScheme: scheme });
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: this.origin });
    const page = await context.newPage();
    this.#write(page);
    await page.goto(`${this.origin}/?${new URLSearchParams(query)}`);
    await page.locator(".monaco-workbench .part.statusbar").waitFor();
    return new Window(page);
  }

  /** Keeps what goes wrong inside the page. */
  #write(page: Page): void {
    const log = join(ARTEFACTS, `${this.#name}.page.log`);
    page.on("pageerror", (error) => appendFileSync(log, `${error.stack}\n`));
    page.on("console", (said) => {
      if (said.type() === "error") appendFileSync(log, `${said.location().url}: ${said.text()}\n`);
    });
  }

  /** Sets settings of the user anew, besides those that keep VS Code quiet. */
  async configure(settings: Record<string, unknown>): Promise<void> {
    await writeSettings(this.#user, { ...QUIET, ...settings });
  }

  /** Closes every window and ends VS Code. */
  async close(): Promise<void> {
    await this.#browser.close();
    await end(this.#child);
  }
}

function userOf(ground: Ground): string {
  return join(ground.base, "u");
}

async function writeSettings(user: string, settings: Record<string, unknown>): Promise<void> {
  // Settings of the machine count from there alone once trust is granted to a window that is open.
  for (const place of ["User", "Machine"]) {
    await mkdir(join(user, place), { recursive: true });
    // VS Code may look at any time, and half a file is no settings.
    const path = join(user, place, "settings.json");
    await writeFile(`${path}.new`, JSON.stringify(settings));
    await rename(`${path}.new`, path);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  await new Promise((closed) => server.close(closed));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
