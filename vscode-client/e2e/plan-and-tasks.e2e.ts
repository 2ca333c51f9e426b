// A plan that is revised and approved, two tasks side by side, and the changes of the one in a worktree: reviewed, merged, undone.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { commit } from "./support/ground.ts";
import { GREETINGS, SHOUTED } from "./support/sample.ts";
import { stage } from "./support/stage.ts";
import { until } from "./support/until.ts";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const UNSAVED = "# to do: say good night, too";
const WIDTHS = [288, 400, 700];
const USES = 'from greet import evening, morning\n\nprint(morning("Ada"))\nprint(evening("Ada"))\n';
const FIRST = "# Greet louder\n\n1. Put the three greetings into upper case.";
const SECOND = `# Greet louder

1. Find out who greets.
2. Put \`morning\` and \`evening\` into upper case, in a worktree.
3. \`noon\` stays as it is.`;
const FOUND = `\`app.py\` greets twice:

- \`app.py:3\` in the morning
- \`app.py:4\` in the evening

Nobody calls \`noon\`.`;
const MERGED = [SHOUTED[0], SHOUTED[2]] as const;

const on = stage("plan-and-tasks", {
  files: { "greet.py": GREETINGS, "app.py": USES },
  settings: { sandbox: "off", permission: { mode: "ask" } },
});

const card = (name: string) => on.window.panel.frame.getByRole("group", { name: `Task: ${name}` });
const answers = () => on.window.panel.frame.getByRole("group", { name: "Answer the plan" });
const onDisk = () => readFile(join(on.ground.folder, "greet.py"), "utf8");

/** Pictures the panel at the usual widths, and asserts that it fits at each. */
async function atAllWidths(name: string): Promise<void> {
  const { window } = on;
  for (const width of WIDTHS) {
    await window.widenPanel(width);
    assert.deepEqual(await window.panel.overEdge(), []);
    await window.picture(`${name}-${width}`);
  }
  await window.widenPanel(440);
}

test("a plan is written, and another one after a word of the user", async () => {
  const { window, ground } = on;
  const { frame } = window.panel;
  await commit(ground);
  await window.openFile("greet.py");
  await window.openPanel();
  await window.widenPanel(440);
  const mode = frame.getByTitle("Permission mode");
  await mode.click();
  await frame.getByRole("menuitemradio", { name: /^Plan/ }).click();
  await mode.getByText("Plan").waitFor({ state: "attached" });
  await ground.provider.script(
    { tool_calls: [{ name: "plan", arguments: { markdown: FIRST } }] },
    { text: "Shall I do it like this?" },
  );
  await window.panel.say("Plan how to greet louder.");
  await window.panel.text("Shall I do it like this?").waitFor();
  await answers().getByRole("button", { name: "Carry it out" }).waitFor();
  await window.picture("plan-1-first");
  await ground.provider.script(
    { tool_calls: [{ name: "plan", arguments: { markdown: SECOND } }] },
    { text: "Now noon stays, and we look first." },
  );
  await window.panel.say("Leave noon alone, and look first who greets.");
  await window.panel.text("Now noon stays, and we look first.").waitFor();
  // Only the newest plan can be answered.
  assert.equal(await answers().count(), 1);
  await window.picture("plan-2-second");
  assert.equal(await onDisk(), GREETINGS);
});

test("approved, it is given to two tasks, which work side by side", async () => {
  const { window, ground } = on;
  const edits = MERGED.map((words) => ({
    oldText: `f"${words.toLowerCase()}, {name}"`,
    newText: `f"${words}, {name.upper()}!"`,
  }));
  const look = { description: "Find who greets", prompt: "LOOK who calls greet.py", preset: "explore" };
  const write = {
    ...{ description: "Shout in the morning", prompt: "WRITE the greetings in upper case" },
    isolation: "worktree",
  };
  await ground.provider.script(
    {
      text: "I give both parts away.",
      tool_calls: [look, write].map((one) => ({ name: "task", arguments: one })),
    },
    { when: "LOOK who", tool_calls: [{ name: "grep", arguments: { pattern: "greet|morning|evening" } }] },
    { when: "WRITE the", tool_calls: [{ name: "edit", arguments: { path: "greet.py", edits } }] },
    { when: "app.py", text: "I have found two places.", delay_s: 4 },
    { when: "at noon", text: FOUND, delta_delay_s: 0.05 },
    { when: "Success", text: "`morning` and `evening` shout now; `noon` is as it was.", delay_s: 8 },
    { when: "Its report", text: "Both are done. The changes wait in the worktree of the second task." },
  );
  await answers().getByRole("button", { name: "Carry it out" }).click();
  await card(look.description).getByRole("button", { name: "Stop" }).waitFor();
  await card(write.description).getByRole("button", { name: "Stop" }).waitFor();
  await card(write.description).getByText("worktree").waitFor();
  await window.picture("tasks-1-side-by-side");
  await card(look.description).getByRole("button", { name: "Open" }).click();
  await window.panel.text("LOOK who calls greet.py").waitFor();
  await window.picture("tasks-2-opened");
  const field = window.panel.frame.getByRole("textbox", { name: `Message to the task ${look.description}` });
  await field.fill("Say also who greets at noon.");
  await field.press("Enter");
  await window.panel.text("Say also who greets at noon.").waitFor();
  await window.panel.text("Nobody calls").waitFor();
  await window.picture("tasks-3-steered");
  await window.panel.frame.getByRole("heading", { name: look.description }).waitFor();
  await window.panel.button(/^Back to/).click();
  await window.panel.text("Both are done.").waitFor();
  await card(look.description).getByText("Nobody calls").waitFor();
  await card(write.description).getByRole("button", { name: "Review changes" }).waitFor();
  assert.equal(await onDisk(), GREETINGS, "the workspace was changed before the merge");
  await atAllWidths("tasks-4-reported");
  assert.deepEqual(await window.panel.faults(await readFile(AXE, "utf8")), []);
});

test("a task that has ended is read as it was, without a line to steer it", async () => {
  const { window } = on;
  await card("Shout in the morning").getByRole("button", { name: "Open" }).click();
  await window.panel.text("WRITE the greetings in upper case").waitFor();
  assert.equal(await window.panel.frame.getByRole("textbox").count(), 0);
  await atAllWidths("tasks-5-read");
  assert.deepEqual(await window.panel.faults(await readFile(AXE, "utf8")), []);
  await window.panel.button(/^Back to/).click();
});

test("its changes are reviewed beside their diff, and a part of them can be left out", async () => {
  const { window } = on;
  await window.focusEditor();
  await window.page.keyboard.press("Control+End");
  await window.page.keyboard.type(UNSAVED);
  await card("Shout in the morning").getByRole("button", { name: "Review changes" }).click();
  await window.page.locator(".tab.active", { hasText: "base ↔ worktree" }).waitFor();
  await window.page.locator(".multiDiffEntry, .multi-diff-entry").first().waitFor();
  const merge = window.panel.button(/^Merge (all|\d|the)/);
  await merge.getByText("Merge all 2 changes").waitFor();
  await window.page.locator(".view-line", { hasText: "GOOD MORNING" }).first().waitFor();
  await window.picture("tasks-6-review");
  await window.panel.frame.getByRole("checkbox", { name: "Merge the change at line 13" }).uncheck();
  await merge.getByText("Merge 1 of 2 changes").waitFor();
  await atAllWidths("tasks-7-chosen");
  assert.deepEqual(await window.panel.faults(await readFile(AXE, "utf8")), []);
  await window.panel.frame.getByRole("checkbox", { name: "Merge the change at line 13" }).check();
});

test("merged, the editor has them beside what the user has not saved; undone, it has only that", async () => {
  const { window } = on;
  await window.panel.button("Merge all 2 changes").click();
  await window.panel.text("Merged into greet.py.").waitFor();
  await window.tab("greet.py").click();
  const text = await window.untilEditorText("the merge", (now) =>
    MERGED.every((words) => now.includes(words)),
  );
  assert.ok(text.includes(UNSAVED) && !text.includes(SHOUTED[1]), text);
  await window.picture("tasks-8-merged");
  await window.panel.button("Undo the merge").click();
  await window.panel.text("The merge was undone.").waitFor();
  const undone = await window.untilEditorText("the undo", (now) =>
    MERGED.every((words) => !now.includes(words)),
  );
  assert.ok(undone.includes(UNSAVED), undone);
  await window.picture("tasks-9-undone");
});

test("what is not merged is discarded after a second word, and nothing is lost", async () => {
  const { window, ground } = on;
  await window.panel.button("Back to the conversation").click();
  const write = card("Shout in the morning");
  await write.getByRole("button", { name: "Discard" }).click();
  await write.getByRole("button", { name: "Discard changes" }).waitFor();
  await window.picture("tasks-10-asked");
  await write.getByRole("button", { name: "Discard changes" }).click();
  await write.getByText(/Git keeps the changes as refs\/tiller\/kept/).waitFor();
  await window.picture("tasks-11-discarded");
  await until("the text of the user", async () => (await onDisk()) === GREETINGS);
  assert.equal(await ground.provider.isDone(), true);
});
