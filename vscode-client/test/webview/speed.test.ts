// How the panel bears a flood and a long session: complete soon, and never stuck.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { longestTaskMs } from "../../e2e/support/tasks.js";
import type { ToPanel } from "../../src/shared/messages.js";
import type { Item } from "../../src/shared/wire.js";
import { emptySnapshot, HELLO, launch, noBrowser, Stage } from "./stage.js";

const skip = noBrowser() ?? false;
const AT = "2026-01-01T00:00:00Z";
const DELTAS = 20_000;
/** As the extension packs them. */
const PACKED_MS = 30;
const COMPLETE_MS = 3000;
const BLOCKED_MS = 100;
let browser: Browser;
before(async () => {
  if (!skip) browser = await launch();
});
after(() => browser?.close());

const FLOODS: Readonly<Record<string, (index: number) => string>> = {
  "one paragraph": () => "word ",
  "short paragraphs": (index) => (index % 40 === 39 ? ".\n\n" : "word "),
  "one block of code": (index) =>
    index === 0 ? "```python\n" : index === DELTAS - 1 ? "\n```\n" : index % 8 === 7 ? "\n" : "x = 1; ",
};

for (const [name, piece] of Object.entries(FLOODS)) {
  test(`20,000 deltas of ${name} are complete within 3 s, and block nothing`, {
    skip,
    timeout: 120_000,
  }, async () => {
    const stage = await Stage.open(browser);
    await stage.play(HELLO, emptySnapshot());
    const snapshot = emptySnapshot();
    assert.ok(snapshot.type === "snapshot");
    const text = Array.from({ length: DELTAS }, (_, index) => piece(index)).join("");
    const pieces = Array.from({ length: DELTAS }, (_, index) => piece(index));
    const given = { session: snapshot.session, pieces, text, at: AT, packedMs: PACKED_MS };
    let seenMs = 0;
    const blockedMs = await longestTaskMs(browser, stage.page, async () => {
      seenMs = await stage.page.evaluate(flood, given);
    });
    console.log(`${name}: complete after ${Math.round(seenMs)} ms, longest task ${Math.round(blockedMs)} ms`);
    assert.ok(seenMs <= COMPLETE_MS, `complete after ${seenMs} ms`);
    assert.ok(blockedMs <= BLOCKED_MS, `blocked for ${blockedMs} ms`);
    await stage.page.close();
  });
}

/** Runs in the page: posts the deltas in packs, as fast as they come, and waits for the end of the text. */
async function flood(given: {
  session: string;
  pieces: string[];
  text: string;
  at: string;
  packedMs: number;
}): Promise<number> {
  const { session, pieces, text, at, packedMs } = given;
  const post = (events: object[]) => window.postMessage({ type: "events", session, events }, "*");
  const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));
  const perPack = 400;
  for (let from = 0; from < pieces.length; from += perPack) {
    const part = pieces.slice(from, from + perPack);
    post(
      part.map((one, index) => ({
        seq: 2 + from + index,
        at,
        type: "message.delta",
        run: "r",
        item: "m",
        text: one,
      })),
    );
    await pause(packedMs);
  }
  const content = [{ type: "text", text: `${text}\n\nThe very end.` }];
  post([
    { seq: pieces.length + 2, at, type: "message.ended", run: "r", item: "m", role: "assistant", content },
  ]);
  const began = performance.now();
  const shown = () => document.getElementById("timeline")?.textContent?.includes("The very end.");
  while (!shown() && performance.now() - began < 20_000) await pause(10);
  return performance.now() - began;
}

test("a session of 100,000 lines opens and scrolls without a hitch", { skip, timeout: 120_000 }, async () => {
  const stage = await Stage.open(browser);
  const snapshot = emptySnapshot();
  assert.ok(snapshot.type === "snapshot");
  const items: Item[] = Array.from({ length: 2000 }, (_, index): Item[] => {
    const lines = Array.from(
      { length: 50 },
      (_, line) => `Line ${index * 50 + line} with **words** in it.`,
    ).join("\n\n");
    const role = index % 2 === 0 ? "user" : "assistant";
    return [{ kind: "message", item: `i${index}`, role, content: [{ type: "text", text: lines }] }];
  }).flat();
  await stage.play(HELLO);
  const message: ToPanel = { ...snapshot, items };
  const opened = await stage.page.evaluate(
    async (given) => {
      const began = performance.now();
      window.postMessage(given, "*");
      const shown = () => document.getElementById("timeline")?.textContent?.includes("Line 99999 ");
      while (!shown() && performance.now() - began < 30_000)
        await new Promise((done) => setTimeout(done, 10));
      return performance.now() - began;
    },
    message as unknown as object,
  );
  const cells = await stage.page.locator(".cell").count();
  const blockedMs = await longestTaskMs(browser, stage.page, () => stage.page.evaluate(scroll));
  console.log(
    `opened in ${Math.round(opened)} ms, ${cells} cells; longest task while scrolling ${Math.round(blockedMs)} ms`,
  );
  assert.ok(cells < 80, `${cells} cells`);
  assert.ok(opened < 5000, `opened in ${opened} ms`);
  assert.ok(blockedMs <= BLOCKED_MS, `blocked for ${blockedMs} ms`);
  await stage.page.close();
});

/** Runs in the page: scrolls up as a wheel does. */
async function scroll(): Promise<void> {
  const list = document.getElementById("timeline");
  list?.dispatchEvent(new WheelEvent("wheel", { deltaY: -100 }));
  for (let step = 0; step < 120 && list; step++) {
    list.scrollTop -= 400;
    await new Promise((done) => requestAnimationFrame(done));
  }
}
