// Plays messages of the extension into the built panel, in a headless browser under the rules of a webview.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { chromium } from "playwright-core";
import type { ToHost, ToPanel } from "../../src/shared/messages.js";
import type { AgentEvent, Frame, Item, Snapshot } from "../../src/shared/wire.js";
import { THEMES, type ThemeName, themeCss } from "./themes.js";

const ORIGIN = "http://panel.test";
const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Says why no browser can be had, or nothing. In CI there must be one. */
export function noBrowser(): string | undefined {
  if (existsSync(CHROMIUM)) return undefined;
  if (process.env["CI"] === "true") throw new Error(`${CHROMIUM} is missing: install Chromium.`);
  return `${CHROMIUM} is missing: install Chromium, or name it in CHROMIUM`;
}

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** A recorded session: what the server sent, and what it answered. */
export interface Log {
  name: string;
  frames: Frame[];
  items: Item[];
  answers: Record<string, unknown>;
}

export function readLog(name: string): Log {
  return JSON.parse(readFileSync(join("test", "webview", "fixtures", `${name}.json`), "utf8")) as Log;
}

/** Gives a log as the extension would hand it to the panel. */
export function messagesOf(log: Log): ToPanel[] {
  return log.frames.flatMap((frame): ToPanel[] => {
    if (frame.kind === "agent/snapshot") {
      const { session, epoch, seq, snapshot } = frame;
      return [{ type: "snapshot", session, epoch, seq, snapshot }];
    }
    if (frame.kind !== "agent/events") return [];
    return [{ type: "events", session: frame.session, events: frame.events as unknown as AgentEvent[] }];
  });
}

export const HELLO: ToPanel = {
  type: "hello",
  state: { ready: true },
  windowFocused: true,
  trusted: true,
  folders: [{ name: "project", uri: "file:///home/ada/project" }],
};

type Answers = Record<string, unknown>;

/** One panel on a page of its own. */
export class Stage {
  readonly page: Page;
  readonly faults: string[] = [];

  private constructor(page: Page) {
    this.page = page;
    page.on("pageerror", (error) => this.faults.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error") this.faults.push(message.text());
    });
  }

  static async open(
    browser: Browser,
    { theme = "dark" as ThemeName, width = 480, height = 900 } = {},
  ): Promise<Stage> {
    const page = await browser.newPage({ viewport: { width, height } });
    const stage = new Stage(page);
    await page.route(`${ORIGIN}/**`, async (route) => {
      const path = new URL(route.request().url()).pathname.slice(1);
      if (path === "") await route.fulfill({ contentType: "text/html", body: html(theme) });
      else await route.fulfill({ path: join("dist", path) });
    });
    await page.goto(`${ORIGIN}/`);
    await page.waitForFunction(() => (window as unknown as Window_).sent.some((one) => one.type === "ready"));
    return stage;
  }

  /** Says what requests are answered with, by method; others are answered with an empty object, `never` with nothing. */
  async answer(answers: Answers): Promise<void> {
    await this.page.evaluate(
      (given) => Object.assign((window as unknown as Window_).answers, given),
      answers,
    );
  }

  async play(...messages: ToPanel[]): Promise<void> {
    await this.page.evaluate(
      (given) => {
        for (const message of given) window.postMessage(message, "*");
      },
      messages as unknown as object[],
    );
    await this.settled();
  }

  /** Plays a log whole, or up to the first event of a type and the change of state that follows it. */
  async playLog(name: string, { until }: { until?: AgentEvent["type"] } = {}): Promise<Log> {
    const log = readLog(name);
    const [snapshot, ...rest] = messagesOf(log);
    if (snapshot?.type !== "snapshot") throw new Error("a log begins with a snapshot");
    const events = rest.flatMap((message) => (message.type === "events" ? message.events : []));
    const at = events.findIndex((event) => event.type === until);
    const end = at < 0 ? events.length : atRest(events, at);
    await this.play(HELLO, snapshot, {
      type: "events",
      session: snapshot.session,
      events: events.slice(0, end),
    });
    return log;
  }

  /** Waits until what was said has reached the panel, is answered and is on the screen: nothing is left to do. */
  async settled(): Promise<void> {
    await this.page.evaluate(async () => {
      const place = window as unknown as Window_;
      const frame = () => new Promise((shown) => requestAnimationFrame(shown));
      for (let rest = 0; rest < 2; ) {
        await new Promise<void>((heard) => {
          place.heard = heard;
          window.postMessage("heard", "*");
        });
        // What is measured is told after a frame, and shown in the next.
        await frame();
        await frame();
        rest = place.due() === 0 ? rest + 1 : 0;
      }
    });
  }

  async sent(): Promise<ToHost[]> {
    await this.settled();
    return (await this.page.evaluate(() => (window as unknown as Window_).sent)) as ToHost[];
  }

  async requests(method: string): Promise<Record<string, unknown>[]> {
    const all = await this.sent();
    return all.flatMap((one) => (one.type === "request" && one.method === method ? [one.params] : []));
  }

  async text(of: Locator): Promise<string> {
    await this.settled();
    return (await of.textContent()) ?? "";
  }

  async value(of: Locator): Promise<string> {
    await this.settled();
    return of.inputValue();
  }

  async count(of: Locator): Promise<number> {
    await this.settled();
    return of.count();
  }

  async picture(name: string): Promise<void> {
    await this.page.screenshot({ path: join("dist", "pictures", `${name}.png`) });
  }
}

interface Window_ {
  sent: { type: string }[];
  answers: Answers;
  /** Counts the answers, frames and short times that the page still waits for. */
  due(): number;
  heard(): void;
}

function html(theme: ThemeName): string {
  // The rules are those of the extension's own page; the theme and the stand-in for VS Code have a nonce.
  const rules = `default-src 'none'; script-src 'nonce-n' ${ORIGIN}; style-src 'nonce-n' ${ORIGIN}; font-src ${ORIGIN}; img-src ${ORIGIN} data: blob:`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tiller</title>
<meta http-equiv="Content-Security-Policy" content="${rules}">
<style nonce="n">${themeCss(theme)}</style><link rel="stylesheet" href="/panel.css">
<script nonce="n">
window.sent = []; window.answers = { "agent/auth/status": { providers: [] } };
{
  // Longer ones are for what goes away by itself, such as a word of thanks.
  const SHORT_MS = 1000;
  const due = new Set();
  const counted = (begin, end, isCounted) => {
    const [first, second] = [window[begin], window[end]];
    window[begin] = (act, ...words) => {
      const mark = {};
      const id = first.call(window, (...given) => { due.delete(mark); act(...given); }, ...words);
      mark.id = begin + id;
      if (isCounted(words[0])) due.add(mark);
      return id;
    };
    window[end] = (id) => {
      for (const mark of due) if (mark.id === begin + id) due.delete(mark);
      second.call(window, id);
    };
  };
  counted("setTimeout", "clearTimeout", (ms) => (ms ?? 0) <= SHORT_MS);
  counted("requestAnimationFrame", "cancelAnimationFrame", () => true);
  window.due = () => due.size;
  window.addEventListener("message", (event) => {
    if (event.data !== "heard") return;
    event.stopImmediatePropagation();
    window.heard();
  }, true);
}
window.acquireVsCodeApi = () => ({
  getState: () => JSON.parse(sessionStorage.getItem("state") ?? "null"),
  setState: (state) => sessionStorage.setItem("state", JSON.stringify(state)),
  postMessage: (message) => {
    window.sent.push(structuredClone(message));
    if (message.id === undefined) return;
    const name = message.type === "request" ? message.method : message.type;
    const found = window.answers[name] ?? (name.startsWith("find") ? { items: [] } : {});
    if (found.never) return;
    const answer = { type: "answer", id: message.id, ...(found.refused ? { error: found.refused } : { result: found }) };
    setTimeout(() => window.postMessage(answer, "*"));
  },
});
</script></head><body class="${THEMES[theme].body}"><div id="app"></div><script src="/panel.js"></script></body></html>`;
}

/** Gives the end of what is played: with the change of state that follows at once. */
function atRest(events: readonly AgentEvent[], at: number): number {
  return events[at + 1]?.type === "session.state" ? at + 2 : at + 1;
}

/** A session as it is when nothing was said yet. */
export function emptySnapshot(changes: Partial<Snapshot> = {}): ToPanel {
  const [first] = messagesOf(readLog("edits"));
  if (first?.type !== "snapshot") throw new Error("the log begins with a snapshot");
  return { ...first, snapshot: { ...first.snapshot, ...changes } };
}
