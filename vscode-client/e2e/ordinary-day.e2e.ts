// A day with Tiller: unsaved text, an edit, an undo, a verdict, a permission, steering, a stop, a reload, a second window.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { processesWith } from "./support/processes.ts";
import { GREETINGS, REPORT, SHOUTED, shouting } from "./support/sample.ts";
import { stage } from "./support/stage.ts";
import { until } from "./support/until.ts";

const UNSAVED = "# to do: say good night, too";
const longBuild = () => ({
  name: "bash",
  arguments: { command: "for i in $(seq 1 600); do echo step $i; sleep 0.2; done" },
});
const on = stage("day", {
  files: { "greet.py": GREETINGS },
  settings: { sandbox: "off", permission: { mode: "ask" } },
});

test("unsaved text stands in the editor", async () => {
  const { window } = on;
  await window.openFile("greet.py");
  await window.page.keyboard.press("Control+End");
  await window.page.keyboard.type(UNSAVED);
  assert.equal(await window.isDirty("greet.py"), true);
});

test("the answer streams into the panel", async () => {
  const { window, ground } = on;
  await ground.provider.script(shouting, { text: REPORT });
  await window.openPanel();
  await window.picture("1-empty");
  await window.widenPanel(440);
  await window.panel.say("Make the greetings shout.");
  const seen = await window.panel.watch("your unsaved lines are as you left them");
  const partial = seen.filter(
    (text) => text.includes("I put the three") && !text.includes("All three greetings"),
  );
  assert.ok(partial.length >= 2, `only ${partial.length} partial texts were seen`);
});

test("the edit lies in the dirty tab, and not on the disk", async () => {
  const { window, ground } = on;
  const text = await window.untilEditorText("the edit", (now) => now.includes(SHOUTED[2]));
  for (const words of [...SHOUTED, UNSAVED])
    assert.ok(text.includes(words), `${words} is missing in ${text}`);
  assert.equal(await window.isDirty("greet.py"), true);
  assert.equal(await readFile(join(ground.folder, "greet.py"), "utf8"), GREETINGS);
  await window.panel.hunk(3).waitFor();
  await window.panel.text("Done").waitFor();
  await window.page.getByText("Keep all 3 changes").waitFor();
  // README.md shows this picture, as media/screenshot.png.
  await window.picture("2-edited");
});

test("one key undoes it, another brings it back", async () => {
  const { window } = on;
  await window.focusEditor();
  await window.page.keyboard.press("Control+z");
  const undone = await window.untilEditorText("the undo", (now) => !now.includes("GOOD"));
  assert.ok(undone.includes(UNSAVED));
  await window.picture("3-undone");
  await window.page.keyboard.press("Control+Shift+z");
  await window.untilEditorText("the redo", (now) => SHOUTED.every((words) => now.includes(words)));
});

test("one hunk of three is rejected, and the model is told", async () => {
  const { window, ground } = on;
  await window.panel.hunk(2).getByRole("button", { name: "Reject" }).click();
  const text = await window.untilEditorText("the rejection", (now) => !now.includes(SHOUTED[1]));
  assert.ok(text.includes("good day") && text.includes(SHOUTED[0]) && text.includes(SHOUTED[2]));
  await window.picture("4-rejected");
  const before = (await ground.provider.asked()).length;
  await ground.provider.script({ text: "I see that noon keeps its voice down." });
  await window.panel.say("And now?");
  await window.panel.text("noon keeps its voice down").waitFor();
  const asked = (await ground.provider.asked()).slice(before).join("\n");
  assert.match(asked, /reject/i, "the model was not told of the rejection");
});

test("a permission card is answered", async () => {
  const { window, ground } = on;
  const command = "echo made > made.txt";
  await ground.provider.script(
    { text: "I make a file.", tool_calls: [{ name: "bash", arguments: { command } }] },
    { text: "The file is made." },
  );
  await window.panel.say("Make a file with the shell.");
  const card = window.panel.permission;
  await card.waitFor();
  assert.match((await card.textContent()) ?? "", /echo made > made\.txt/);
  await window.picture("5-permission");
  await window.panel.allow();
  await window.panel.text("The file is made.").waitFor();
  assert.equal(await readFile(join(ground.folder, "made.txt"), "utf8"), "made\n");
});

test("words steer a run", async () => {
  const { window, ground } = on;
  await ground.provider.script(
    { text: "I run the long build.", tool_calls: [longBuild()] },
    { text: "Understood: I only look at the first steps.", tool_calls: [longBuild()] },
  );
  await window.panel.say("Run the long build.");
  await window.panel.allow();
  await window.panel.text("step 3").waitFor();
  await window.panel.say("Only the first steps, please.");
  await window.panel.text("Understood: I only look at the first steps.").waitFor();
  const last = (await ground.provider.asked()).at(-1) ?? "";
  assert.match(last, /Only the first steps, please\./);
});

test("a long command is stopped", async () => {
  const { window, ground } = on;
  await window.panel.allow();
  await window.panel.text("step 2").waitFor();
  await window.panel.composer.fill("Afterwards: what did it cost?");
  await window.panel.composer.press("Alt+Enter");
  await window.panel.text("Queued").waitFor();
  await window.picture("6-steering");
  const pressed = performance.now();
  await window.panel.button(/^Stop/).first().click();
  await until("the end of the command", () =>
    processesWith(ground, "seq 1 600").then((count) => count === 0),
  );
  const took = performance.now() - pressed;
  assert.ok(took < 5000, `it took ${took} ms to stop`);
  await window.panel.text("Stopped").waitFor();
  await window.picture("7-stopped");
  await window.panel.button("Remove").click();
});

test("a window that is reloaded in mid-run has lost nothing", async () => {
  const { window, ground } = on;
  const words = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
  await ground.provider.script({ text: words, deltas: 60, delta_delay_s: 0.25 });
  await window.panel.say("Count for a while.");
  await window.panel.text(/word5\b/).waitFor();
  await window.reload();
  await window.panel.text(/word6\b/).waitFor();
  await window.picture("8-reloaded");
  const all = await window.panel.until("the last word", (text) => text.includes("word59"));
  for (let index = 0; index < 60; index += 1) assert.match(all, new RegExp(`\\bword${index}\\b`));
  await window.untilEditorText("the unsaved text", (now) => now.includes(UNSAVED));
  assert.equal(await window.isDirty("greet.py"), true);
});

test("a second window on the folder shows the same session at once", async () => {
  const { code, window, ground } = on;
  const second = await code.open();
  await second.openPanel();
  await second.panel.text(/word59\b/).waitFor();
  await ground.provider.script({ text: "Both of you see this.", deltas: 6, delta_delay_s: 0.1 });
  await second.panel.say("Who sees this?");
  await Promise.all([window, second].map((one) => one.panel.text("Both of you see this.").waitFor()));
  await until("the words in the first window", async () =>
    (await window.panel.transcript()).includes("Who sees this?"),
  );
  await second.picture("9-second-window");
  await second.page.context().close();
});
