// One session in VS Code and in two tabs of a browser: each shows what another did, and each can answer.
import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { Chromium, faultsOf } from "./support/browser.ts";
import { ARTEFACTS } from "./support/ground.ts";
import { stage } from "./support/stage.ts";
import { PATIENCE_MS, until } from "./support/until.ts";
import { sessionOf, Web } from "./support/web.ts";

const DESKTOP = { width: 1200, height: 800 };
const PHONE = { width: 390, height: 844 };

const on = stage("beside-browser", { settings: { sandbox: "off", permission: { mode: "ask" } } });
let web: Web;
let chromium: Chromium;
let first: Page;
let second: Page;
const faults: string[][] = [];

after(async () => {
  await chromium?.stop();
  await web?.stop();
});

/** Starts `tiller web`, and a browser with a tab of a desktop and one as small as a phone. */
async function openTabs(): Promise<void> {
  web = await Web.start(on.ground, "beside-web");
  chromium = await Chromium.start();
  const context = await chromium.browser.newContext({ viewport: DESKTOP, colorScheme: "light" });
  context.setDefaultTimeout(PATIENCE_MS);
  first = await context.newPage();
  second = await context.newPage();
  await second.setViewportSize(PHONE);
  faults.push(faultsOf(first), faultsOf(second));
}

async function pictures(name: string): Promise<void> {
  await on.window.picture(`beside-${name}-vscode`);
  await first.screenshot({ path: join(ARTEFACTS, `beside-${name}-tab-1.png`) });
  await second.screenshot({ path: join(ARTEFACTS, `beside-${name}-tab-2.png`) });
}

const words = (page: Page, text: string) => page.locator(".timeline").getByText(text);
/** Waits until the words are in all three. */
const everywhere = (text: string) =>
  Promise.all([
    on.window.panel.text(text).waitFor(),
    words(first, text).waitFor(),
    words(second, text).waitFor(),
  ]);

test("a session of VS Code is there in both tabs", async () => {
  const { window, ground } = on;
  await window.openPanel();
  await ground.provider.script({ text: "Ready." });
  await window.panel.say("Good morning");
  await window.panel.text("Ready.").waitFor();
  await openTabs();
  await first.goto(web.address);
  await words(first, "Ready.").waitFor();
  await second.goto(first.url());
  await everywhere("Ready.");
  assert.equal(sessionOf(first), sessionOf(second));
  await pictures("1-session");
});

test("a prompt of VS Code asks in all three, is answered in one tab, and goes on in the others", async () => {
  const { window, ground } = on;
  await ground.provider.script(
    { tool_calls: [{ name: "bash", arguments: { command: "echo allowed > allowed.txt" } }] },
    { text: "The file is written." },
  );
  await window.panel.say("Write the file");
  const asked = (page: Page) => page.locator(".asks");
  await Promise.all([window.panel.permission.waitFor(), asked(first).waitFor(), asked(second).waitFor()]);
  await pictures("2-permission");
  await first.getByRole("button", { name: "Allow once" }).click();
  await Promise.all([
    window.panel.permission.waitFor({ state: "hidden" }),
    asked(second).waitFor({ state: "hidden" }),
  ]);
  await everywhere("The file is written.");
  await until("the command has run", async () =>
    access(join(ground.folder, "allowed.txt")).then(
      () => true,
      () => false,
    ),
  );
  await pictures("3-answered");
});

test("a prompt of the phone is in VS Code and in the other tab", async () => {
  const { ground } = on;
  await ground.provider.script({ text: "Seen by all." });
  await second.locator("#composer-text").fill("Who sees this?");
  await second.getByRole("button", { name: "Send (Enter)" }).click();
  await everywhere("Who sees this?");
  await everywhere("Seen by all.");
  await pictures("4-phone");
  assert.deepEqual(faults, [[], []]);
});
