// Pictures that the server stores: read once, shown wherever they stand.

import assert from "node:assert/strict";
import type { AgentEvent } from "../../src/shared/wire.js";
import { AT, panelTest, said } from "./panel-test.js";
import { emptySnapshot, HELLO, type Stage } from "./stage.js";

const BLOB = "ab".repeat(32);
const PICTURE = { type: "image", mime: "image/png", blob: BLOB, size: 2 };

/** Shows messages of the user with the picture, one for each item. */
async function play(stage: Stage, ...items: string[]): Promise<void> {
  const message = { at: AT, type: "message.ended", role: "user", content: [PICTURE] };
  const events = items.map((item, index) => ({ ...message, seq: index + 2, item, entry: item }));
  await stage.play(HELLO, emptySnapshot(), said(events as unknown as AgentEvent[]));
}

panelTest("a stored picture is asked for once and shown wherever it stands", async (stage) => {
  await stage.answer({ "agent/blob/read": { mime: "image/png", size: 2, data: "aGk=" } });
  await play(stage, "u", "v");
  const shown = stage.page.locator(".user img.picture");
  await shown.nth(1).waitFor();
  assert.equal(await stage.count(shown), 2);
  assert.equal(await shown.first().getAttribute("src"), "data:image/png;base64,aGk=");
  assert.deepEqual(await stage.requests("agent/blob/read"), [{ blob: BLOB, offset: 0 }]);
});

panelTest("a stored picture that the server does not have is named", async (stage) => {
  await stage.answer({ "agent/blob/read": { refused: { message: "nothing is stored" } } });
  await play(stage, "u");
  assert.equal(await stage.count(stage.page.locator(".user .chip")), 1);
  assert.equal(await stage.count(stage.page.locator(".user img.picture")), 0);
  assert.equal((await stage.requests("agent/blob/read")).length, 1);
});
