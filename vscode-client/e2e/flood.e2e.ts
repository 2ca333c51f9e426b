// A model that speaks as fast as it can.
import assert from "node:assert/strict";
import { test } from "node:test";
import { stage } from "./support/stage.ts";
import { until } from "./support/until.ts";

const DELTAS = 20_000;
const LATE_MS = 3000;
const BLOCKED_MS = 100;
const on = stage("flood", { files: { "a.txt": "a\n" } });

test("twenty thousand deltas are in the panel soon after the last, and the panel never stands still", async () => {
  const { window, ground } = on;
  await window.openPanel();
  await ground.provider.script({ text: "Ready." });
  await window.panel.say("Are you ready?");
  await window.panel.text("Ready.").waitFor();
  const words = Array.from({ length: DELTAS }, (_, index) => `w${index}`);
  // Paragraphs, lists and code come again and again, as in real answers.
  const text = words.map((word, index) => word + (index % 50 === 49 ? "\n\n" : " ")).join("");
  await ground.provider.script({ text, deltas: DELTAS });
  await window.panel.watchBlocking();
  await window.panel.say("Say a lot.");
  await until("the end of the stream", () => ground.provider.isDone(), { patience_ms: 60_000 });
  const ended = performance.now();
  await window.panel.text(`w${DELTAS - 1}`).waitFor({ timeout: 60_000 });
  await window.panel.button(/^Stop/).first().waitFor({ state: "hidden" });
  const late_ms = performance.now() - ended;
  const blocked = await window.panel.blockedFor();
  console.log(`complete ${Math.round(late_ms)} ms after the stream, longest task ${Math.round(blocked)} ms`);
  await window.picture("flood");
  assert.ok(late_ms <= LATE_MS, `complete only ${late_ms} ms after the end of the stream`);
  assert.ok(blocked <= BLOCKED_MS, `the panel stood still for ${blocked} ms`);
});
