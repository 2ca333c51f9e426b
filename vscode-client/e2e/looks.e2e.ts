// How the panel looks to different eyes: three themes, and those who do not see it at all.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { test } from "node:test";
import { GREETINGS, REPORT, shouting } from "./support/sample.ts";
import { stage } from "./support/stage.ts";
import { OF_CHECKOUT } from "./support/workbench.ts";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const THEMES = {
  dark: "Default Dark Modern",
  light: "Default Light Modern",
  contrast: "Default High Contrast",
};
const on = stage("looks", {
  files: { "greet.py": GREETINGS },
  settings: { sandbox: "off", permission: { mode: "ask" } },
});

test("a conversation with everything in it", async () => {
  const { window, ground } = on;
  await window.openFile("greet.py");
  await window.openPanel();
  await window.widenPanel(440);
  await ground.provider.script(
    { ...shouting, delta_delay_s: 0 },
    { text: REPORT, tool_calls: [{ name: "bash", arguments: { command: "python -m pytest -q" } }] },
  );
  await window.panel.say("Make the greetings shout.");
  await window.panel.permission.waitFor();
});

for (const [name, theme] of Object.entries(THEMES)) {
  test(`${theme} has no serious fault for those who use it otherwise`, async () => {
    const { window, code } = on;
    await code.configure({ ...OF_CHECKOUT, "workbench.colorTheme": theme });
    await window.untilTheme(name === "contrast" ? "hc-black" : `vs${name === "dark" ? "-dark" : ""}`);
    await window.picture(`look-${name}`);
    const faults = await window.panel.faults(await readFile(AXE, "utf8"));
    assert.deepEqual(faults, []);
  });
}
