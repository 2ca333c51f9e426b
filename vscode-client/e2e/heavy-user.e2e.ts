// A year of use: 5,000 sessions, one of them with 300 tool calls and 20,000 lines, and 50,000 ignored files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { commit, put } from "./support/ground.ts";
import { fillHome } from "./support/heavy-home.ts";
import { stage } from "./support/stage.ts";

const TASK_MS = 50;

const on = stage("heavy-user", {
  files: { "billing.py": "total = 0\n", ".gitignore": "node_modules/\n" },
});

/** Plays something after everything is loaded; no task of the page may take longer than the eye sees. */
async function smooth(what: string, play: () => Promise<void>): Promise<void> {
  const longest = await on.window.longestTaskMs(play);
  console.log(`${what}: longest task ${Math.round(longest)} ms`);
  assert.ok(longest <= TASK_MS, `${what}: the page stood still for ${longest} ms`);
}

test("the sessions of a year are listed, searched, and the long one opens at its end", async () => {
  const { window, ground } = on;
  await commit(ground);
  await fillHome(ground, Date.now());
  await window.openPanel();
  await window.command("Tiller: Show Sessions");
  const list = window.panel.frame.getByRole("list", { name: "Sessions" });
  await list.getByText("Read every log.").waitFor();
  await window.picture("heavy-1-sessions");
  const search = window.panel.frame.getByRole("searchbox", { name: "Search sessions" });
  await search.fill("Question 4321");
  await list.getByText("Question 4321 about the billing").waitFor();
  await search.fill("Read every log");
  await list.getByText("Read every log.").click();
  await window.panel.text("I have read all logs.").waitFor();
  await window.picture("heavy-2-opened");
});

test("scrolling through all of it keeps moving", async () => {
  const { window } = on;
  await smooth("scrolling", async () => {
    await window.panel.text("I have read all logs.").hover();
    for (let turn = 0; turn < 40; turn += 1) await window.page.mouse.wheel(0, -1500);
    await window.panel.text("Step 0: I look").waitFor();
  });
  await window.picture("heavy-3-scrolled");
});

test("every key arrives, and the menu of files leaves out what Git ignores", async () => {
  const { window, ground } = on;
  const words = "What does the last call say about the billing of June, and who was charged twice? ";
  await window.panel.composer.focus();
  await smooth("typing", () => window.panel.composer.pressSequentially(words));
  assert.equal(await window.panel.composer.inputValue(), words);
  await put(ground, "bills/june.csv", "a,b\n");
  await put(ground, "node_modules/package-0/billing.js", "export {};\n");
  await smooth("the menu of files", async () => {
    await window.panel.composer.pressSequentially("@bill");
    await window.panel.frame.getByRole("option", { name: /billing\.py/ }).waitFor();
  });
  const offered = await window.panel.frame.getByRole("option").allInnerTexts();
  assert.deepEqual(
    offered.filter((one) => one.includes("billing.js")),
    [],
  );
  await window.picture("heavy-4-files");
  await window.page.keyboard.press("Escape");
  await window.panel.composer.fill(words);
});

test("a new run streams below the long transcript without standing still", async () => {
  const { window, ground } = on;
  const text = Array.from({ length: 400 }, (_, word) => `word${word} `).join("");
  // The session is longer than the context of the model: it is compacted afterwards.
  await ground.provider.script({ text, delta_delay_s: 0.002 }, { text: "Every log was read." });
  await smooth("streaming", async () => {
    await window.panel.composer.press("Enter");
    await window.panel.text("word399").waitFor();
  });
  await window.picture("heavy-5-streamed");
});
