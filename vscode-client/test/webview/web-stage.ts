// What the tests of the page of `tiller web` share: a browser for each file, and a server for each test.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { launch, noBrowser } from "./stage.js";
import { WebServer } from "./web-server.js";

export const PHONE = { width: 390, height: 844 };
const TARGET_PX = 44;
/** Until what is asserted must have come to pass. */
const SOON_MS = 5000;

const skip = noBrowser() ?? false;
let browser: Browser;
before(async () => {
  if (!skip) browser = await launch();
});
after(() => browser?.close());

export interface Scene {
  server: WebServer;
  page: Page;
}

/** Opens the page at the address with the one-off token, and asserts at the end that it met no fault. */
export function webTest(
  name: string,
  {
    log = "edits",
    viewport = { width: 1100, height: 800 },
    dark = true,
    role = "operator" as "observer" | "approver" | "operator",
  },
  play: (scene: Scene) => Promise<void>,
): void {
  test(name, { skip }, async () => {
    const server = await WebServer.start(log);
    server.role = role;
    const context = await browser.newContext({ viewport, colorScheme: dark ? "dark" : "light" });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => {
      // That a server was not there is what some tests are about.
      if (message.type() === "error" && !message.text().includes("Failed to load resource"))
        faults.push(message.text());
    });
    try {
      await page.goto(server.firstAddress);
      await play({ server, page });
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
      await server.stop();
    }
  });
}

export async function eventually(holds: () => Promise<boolean> | boolean, what: string): Promise<void> {
  const end = Date.now() + SOON_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `not in ${SOON_MS} ms: ${what}`);
    await new Promise((go) => setTimeout(go, 20));
  }
}

export async function shows(page: Page, words: string | RegExp): Promise<void> {
  await page.getByText(words).first().waitFor({ timeout: SOON_MS });
}

/** Gives the buttons that a finger misses. */
export function tooSmall(page: Page): Promise<{ name: string; height: number }[]> {
  return page.evaluate((least) => {
    const all = [...document.querySelectorAll<HTMLElement>("button")].filter(
      (one) => one.offsetParent !== null,
    );
    return all
      .map((one) => ({ name: one.title || one.textContent, height: one.getBoundingClientRect().height }))
      .filter(({ height }) => height < least);
  }, TARGET_PX);
}

export const picture = (page: Page, name: string) =>
  page.screenshot({ path: join("dist", "pictures", `web-${name}.png`) });
export const transcript = async (page: Page) =>
  ((await page.locator(".timeline").textContent()) ?? "").replace(/\s+/g, " ");
/** Fields of a session in a list. */
export const ROW = { created: "2026-11-21T09:29:10.000Z", modified: "2026-11-21T09:31:44.500Z", messages: 4 };
