// The first minute: nothing but the extension and a Python, no network, no `tiller` on the PATH.
import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { stage } from "./support/stage.ts";

const on = stage("first-minute", {
  files: { "greet.py": "print('hello')\n" },
  editor: () => ({ "tiller.server.path": "" }),
});

test("the extension installs its own server, and the first prompt is answered within a minute", async () => {
  const { window, ground } = on;
  assert.deepEqual(Object.keys(networkInterfaces()), ["lo"], "this story is told where there is no network");
  const began = performance.now();
  await window.openPanel();
  await window.picture("first-1-installing");
  await ground.provider.script({ text: "Hello! I am here." });
  await window.panel.composer.waitFor({ timeout: 60_000 });
  await window.panel.say("Hello?");
  await window.panel.text("Hello! I am here.").waitFor({ timeout: 60_000 });
  const took_s = (performance.now() - began) / 1000;
  console.log(`the first answer came ${took_s.toFixed(1)} s after the panel was opened`);
  assert.ok(took_s < 60, `it took ${took_s} s`);
  await window.picture("first-2-answered");
});

test("the installation is used again at the next start", async () => {
  const { window, ground } = on;
  await window.reload();
  await ground.provider.script({ text: "Here again." });
  const began = performance.now();
  await window.panel.say("And now?");
  await window.panel.text("Here again.").waitFor();
  console.log(`after a reload: ${((performance.now() - began) / 1000).toFixed(1)} s`);
});
