// A folder that nobody trusts yet: Tiller only reads there, and says so, until the user grants trust.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GREETINGS, SHOUTED, shouting } from "./support/sample.ts";
import { stage } from "./support/stage.ts";

const on = stage("restricted", {
  files: { "greet.py": GREETINGS },
  settings: { sandbox: "off", defaultProjectTrust: "ask", permission: { mode: "auto" } },
  trust: "asked",
});

test("the panel is there in Restricted Mode and says what that means", async () => {
  const { window } = on;
  await window.openPanel();
  const text = await window.panel.until("a word on trust", (now) => /trust/i.test(now));
  assert.match(text, /trust/i);
  await window.picture("restricted-1");
});

test("it answers, and nothing is changed", async () => {
  const { window, ground } = on;
  await ground.provider.script({ ...shouting, delta_delay_s: 0 }, { text: "I may only read here." });
  await window.panel.say("Make the greetings shout.");
  await window.panel.text("I may only read here.").waitFor();
  const last = (await ground.provider.asked()).at(-1) ?? "";
  assert.match(last, /trust|plan|read-only/i, "the model was not told why");
  await window.openFile("greet.py");
  assert.ok(!(await window.editorText()).includes("GOOD"));
  await window.openPanel();
  await window.picture("restricted-2");
});

test("trust is granted, and the same words now change the file", async () => {
  const { window, ground } = on;
  await window.grantTrust();
  await window.picture("restricted-3");
  await window.openPanel();
  await ground.provider.script({ ...shouting, delta_delay_s: 0 }, { text: "Now it is done." });
  await window.panel.say("And now?");
  await window.panel.text("Now it is done.").waitFor();
  await window.untilEditorText("the edit", (now) => SHOUTED.every((words) => now.includes(words)));
  await window.picture("restricted-4");
});
