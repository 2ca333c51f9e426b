// One test of the panel: opened in a browser, played with, and without a fault at the end.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import type { ToPanel } from "../../src/shared/messages.js";
import type { AgentEvent } from "../../src/shared/wire.js";
import { emptySnapshot, launch, noBrowser, Stage } from "./stage.js";

export const AT = "2026-01-01T00:00:00Z";

const skip = noBrowser() ?? false;
let browser: Browser;
before(async () => {
  if (!skip) browser = await launch();
});
after(() => browser?.close());

/** Opens a panel, and asserts at the end that its page met no fault. */
export function panelTest(name: string, play: (stage: Stage) => Promise<void>): void {
  test(name, { skip }, async () => {
    const stage = await Stage.open(browser);
    await play(stage);
    assert.deepEqual(stage.faults, []);
    await stage.page.close();
  });
}

/** Says something as the model, in a session in which nothing was said yet. */
export function modelSays(text: string): ToPanel {
  const content = [{ type: "text", text }];
  return said([
    { seq: 2, at: AT, type: "message.ended", item: "m", role: "assistant", content } as AgentEvent,
  ]);
}

/** Tells events of a session in which nothing happened yet. */
export function said(events: AgentEvent[]): ToPanel {
  const snapshot = emptySnapshot();
  assert.ok(snapshot.type === "snapshot");
  return { type: "events", session: snapshot.session, events };
}
