// The page of `tiller web` over a network that fails: nothing is lost, nothing doubled, and people are told in one sentence.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { Chromium, faultsOf } from "./support/browser.ts";
import { Cutter } from "./support/cutter.ts";
import { ARTEFACTS, type Ground, keepLogs, leave, makeGround } from "./support/ground.ts";
import type { Turn } from "./support/provider.ts";
import { PATIENCE_MS, until } from "./support/until.ts";
import { sessionOf, Web } from "./support/web.ts";

const IS_CAMPAIGN = process.env["TILLER_CAMPAIGN"] === "1";
const CUTS = IS_CAMPAIGN ? 60 : 20;
/** How long a laptop sleeps at least. */
const SLEEP_MS = IS_CAMPAIGN ? 60_000 : 3000;
/** Beyond 2.5 heartbeats of 15 s. */
const WATCHDOG_MS = 40_000;
/** Until the rows of a page are where they stay. */
const SETTLED_MS = 5000;
const CUT_MS = 500;
const SEED = 28;

let ground: Ground;
let web: Web;
let cutter: Cutter;
let chromium: Chromium;
let page: Page;
let faults: string[];
let words = 0;

before(async () => {
  await mkdir(ARTEFACTS, { recursive: true });
  ground = await makeGround({ settings: { permission: { mode: "yolo" }, sandbox: "off" } });
  web = await Web.start(ground, "web-network");
  cutter = await Cutter.start(random(SEED));
  chromium = await Chromium.start({ proxy: cutter.address });
  const context = await chromium.browser.newContext({ viewport: { width: 1200, height: 4000 } });
  context.setDefaultTimeout(PATIENCE_MS);
  page = await context.newPage();
  faults = faultsOf(page);
  await page.clock.install();
  await page.goto(web.address);
  await page.locator("#composer-text").waitFor();
});
afterEach(async (context) => {
  if ("passed" in context && !context.passed)
    await page.screenshot({ path: join(ARTEFACTS, "web-network-failed.png") });
});
after(async () => {
  await chromium?.stop();
  cutter?.stop();
  await web?.stop();
  await keepLogs(ground, "web-network-daemon");
  await leave(ground);
});

/** Gives numbers from 0 to 1 that are the same in each run (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** An answer, and the words in it. */
interface Counted {
  turn: Turn;
  said: string[];
}

/** Makes an answer of words that are said nowhere else, each as a delta of its own. */
function counted(count: number, more: Partial<Turn> = {}): Counted {
  const said = Array.from({ length: count }, () => {
    words += 1;
    return `w${words}.`;
  });
  return { turn: { text: said.join(" "), deltas: count, delta_delay_s: 0.02, ...more }, said };
}

const script = (...all: readonly Counted[]) => ground.provider.script(...all.map(({ turn }) => turn));

/** Gives the words of the conversation. How a run ended is told while it is followed, and not stored with the words. */
async function shown(of = page): Promise<string> {
  const cells = await of.locator(".timeline .cell:not(:has(.run-end))").allTextContents();
  return cells.join(" ").replace(/\s+/g, " ").trim();
}
const countedIn = (text: string) => text.match(/w\d+\./g) ?? [];

/** The words in the conversation; those for screen readers are elsewhere. */
const seen = (text: string, of = page) => of.locator(".timeline").getByText(text);

/** Begins a new session: a page renders what fits on it. */
async function anew(): Promise<void> {
  await page.getByRole("button", { name: "New session", exact: true }).click();
  await page.locator(".welcome").waitFor();
}

async function say(text: string): Promise<void> {
  await page.locator("#composer-text").fill(text);
  await page.locator("#composer-text").press("Enter");
}

/** Waits until the run has ended in the daemon, which no page takes part in. */
async function ended(last: string): Promise<void> {
  const hasEnded = async () => {
    const read = await web.ask("agent/session/read", { session: sessionOf(page), limit: 200 });
    return JSON.stringify(read).includes(last);
  };
  await until("the run has ended", hasEnded, { patience_ms: 3 * PATIENCE_MS });
}

/** Asserts that the page shows what the log has: all words once and in order, as a page that is opened now does. */
async function assertWhole(turns: readonly Counted[]): Promise<void> {
  const expected = turns.flatMap(({ said }) => said);
  await seen(expected.at(-1) ?? "").waitFor();
  await page.getByRole("button", { name: "Stop (Escape)" }).waitFor({ state: "detached" });
  assert.deepEqual(countedIn(await shown()).slice(-expected.length), expected);
  const fresh = await page.context().newPage();
  await fresh.goto(page.url());
  await seen(expected.at(-1) ?? "", fresh).waitFor();
  // The rows of a page that has just come are still being laid out.
  await until(
    "a page that is opened now shows the same",
    async () => (await shown()) === (await shown(fresh)),
    {
      patience_ms: SETTLED_MS,
    },
  ).catch(() => undefined);
  assert.equal(await shown(), await shown(fresh));
  await fresh.close();
}

test("a network that cuts connections at random costs no event and doubles none", async () => {
  const turns = Array.from({ length: Math.ceil(CUTS / 2) }, (_, turn) =>
    counted(60, { tool_calls: [{ name: "bash", arguments: { command: `echo ${turn}` } }] }),
  );
  const last = counted(20);
  await script(...turns, last);
  await say("Count");
  await seen("w1.").waitFor();
  cutter.cutAtRandom({ withinMs: CUT_MS });
  await ended(last.said.at(-1) ?? "");
  cutter.cutNoMore();
  await assertWhole([...turns, last]);
  assert.ok(cutter.cuts >= CUTS, `${cutter.cuts} cuts`);
  console.log(`${cutter.cuts} cuts`);
});

test("a server that does not answer for a while is missed, and the page goes on with it", async () => {
  const turn = counted(100);
  await script(turn);
  await anew();
  await say("Count while the server is stopped");
  await seen(turn.said[0] ?? "").waitFor();
  web.signal("SIGSTOP");
  await page.clock.fastForward(WATCHDOG_MS);
  await page.getByText("The connection to Tiller is lost.").first().waitFor();
  await page.screenshot({ path: join(ARTEFACTS, "web-network-lost.png") });
  web.signal("SIGCONT");
  await assertWhole([turn]);
  await page.getByText("The connection to Tiller is lost.").first().waitFor({ state: "detached" });
});

test("a browser that slept while a run ended shows all of it when it wakes", async () => {
  const turn = counted(100);
  await script(turn);
  await anew();
  await say("Count while the laptop sleeps");
  await seen(turn.said[0] ?? "").waitFor();
  const asleep = performance.now();
  await chromium.signal("SIGSTOP");
  await ended(turn.said.at(-1) ?? "");
  await until("it slept long enough", () => performance.now() - asleep > SLEEP_MS, {
    patience_ms: 2 * SLEEP_MS,
  });
  await chromium.signal("SIGCONT");
  await assertWhole([turn]);
});

test("a server that was started anew does not know the login: one sentence says what to do", async () => {
  await page.locator("#composer-text").fill("a draft");
  const port = web.port;
  web.signal("SIGKILL");
  await page.getByText("The connection to Tiller is lost.").first().waitFor();
  web = await Web.start(ground, "web-network-again", ["--port", port]);
  await page.clock.fastForward(WATCHDOG_MS);
  const alert = page.getByRole("alert");
  await alert.filter({ hasText: "not signed in" }).waitFor();
  assert.equal(await alert.count(), 1);
  assert.equal(await page.locator(".toast").count(), 0);
  assert.equal(
    ((await alert.textContent()) ?? "").trim(),
    "This browser is not signed in. Run `tiller web` in a terminal and open the address that it prints.",
  );
  await page.screenshot({ path: join(ARTEFACTS, "web-network-signed-out.png") });
  const other = await page.context().newPage();
  await other.goto(web.address);
  await other.locator("#composer-text").waitFor();
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  await alert.waitFor({ state: "detached" });
  assert.equal(await page.locator("#composer-text").inputValue(), "a draft");
  const turn = counted(10);
  await script(turn);
  await say("Count once more");
  await assertWhole([turn]);
});

test("the page met no fault", () => {
  assert.deepEqual(faults, []);
});
