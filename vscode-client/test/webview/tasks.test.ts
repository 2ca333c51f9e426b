// Tasks in the panel: under the call that gave them, opened to be read, steered, and what they changed merged or discarded.

import assert from "node:assert/strict";
import { CHANGES, ended, given, ITEMS, LOOK, RUNS, told, WRITE } from "./a-task.js";
import { AT, panelTest } from "./panel-test.js";
import { emptySnapshot, HELLO, type Stage } from "./stage.js";

const FILES = CHANGES.files.map(({ uri }) => uri);
const DONE = { ...WRITE, state: "completed" } as const;

async function play(stage: Stage, ...fields: Parameters<typeof told>[0][number][]): Promise<void> {
  await stage.play(HELLO, emptySnapshot(), told([...RUNS, ...fields]));
}

/** Plays a task that has ended with changes in a worktree. */
async function inWorktree(stage: Stage): Promise<ReturnType<Stage["page"]["getByRole"]>> {
  await stage.answer({ "agent/task/changes": CHANGES });
  await play(stage, ...given(WRITE), ...ended(DONE));
  return stage.page.getByRole("group", { name: `Task: ${WRITE.description}` });
}

panelTest(
  "tasks are under the calls that gave them, with what each does, uses and reports",
  async (stage) => {
    await play(stage, ...given(LOOK), ...given(WRITE));
    const [look, write] = [LOOK, WRITE].map((one) =>
      stage.page.getByRole("group", { name: `Task: ${one.description}` }),
    );
    assert.ok(look && write);
    assert.match(await stage.text(look), /explore[\s\S]*running[\s\S]*grep parse\( src/);
    assert.match(await stage.text(look), /2 answers · 5 tool calls · 12\.3k tokens · \$0\.02/);
    assert.match(await stage.text(write), /worktree · 2 answers/);
    // The conversation shows them; the strip is for what goes on beside it.
    assert.equal(await stage.count(stage.page.getByRole("region", { name: "Tasks" })), 0);
    await look.getByRole("button", { name: "Stop" }).click();
    assert.deepEqual(await stage.requests("agent/task/stop"), [{ id: "t1" }]);
    await stage.play(told(ended({ ...LOOK, state: "completed" }), 20));
    assert.match(await stage.text(look), /done[\s\S]*The parser is called from two places[\s\S]*42 s/);
    assert.doesNotMatch(await stage.text(look), /Its report|The tests cover/);
    await look.getByRole("button", { name: /^Show all/ }).click();
    assert.match(await stage.text(look), /The tests cover/);
  },
);

panelTest("a task that failed, was stopped or lost says so and is continued", async (stage) => {
  for (const [state, word] of [
    ["failed", "failed"],
    ["cancelled", "stopped"],
    ["budget", "budget reached"],
    ["lost", "interrupted"],
  ] as const) {
    const task = { ...LOOK, state, ...(state === "failed" && { error: "the model refused" }) };
    await play(stage, ...given(LOOK), ...ended(task, `Task t1 (x) ${state}. It reported nothing.`));
    const card = stage.page.getByRole("group", { name: `Task: ${LOOK.description}` });
    assert.match(await stage.text(card), new RegExp(word));
    assert.doesNotMatch(await stage.text(card), /reported nothing/);
    if (state === "failed") assert.match(await stage.text(card), /the model refused/);
    await card.getByRole("button", { name: "Continue" }).click();
  }
  assert.deepEqual(await stage.requests("agent/task/resume"), Array(4).fill({ id: "t1" }));
});

panelTest(
  "a task runs in its own session, which is read, followed and steered, with the way back",
  async (stage) => {
    await play(stage, ...given(LOOK));
    await stage.page.getByRole("button", { name: `Open: ${LOOK.description}` }).click();
    const snapshot = emptySnapshot();
    assert.ok(snapshot.type === "snapshot");
    const live = { epoch: "e2", seq: 4, snapshot: { ...snapshot.snapshot, session: "s2" } };
    await stage.play({ type: "task", session: "s2", live, items: ITEMS.slice(0, 2) });
    const delta = {
      seq: 5,
      at: AT,
      run: "r",
      item: "m",
      type: "message.delta",
      text: "I look further.",
    } as const;
    await stage.play({ type: "events", session: "s2", events: [delta] });
    const log = stage.page.getByRole("log", { name: "Conversation" });
    assert.match(await stage.text(log), /Task\s+Look for all callers\.[\s\S]*grep[\s\S]*I look further\./);
    // Nothing in it can be edited, forked or tried again, and the words to the conversation have no place here.
    assert.equal(await stage.count(stage.page.getByRole("button", { name: /Edit message|Fork/ })), 0);
    assert.equal(await stage.count(stage.page.getByRole("combobox", { name: "Prompt" })), 0);
    const field = stage.page.getByRole("textbox", { name: `Message to the task ${LOOK.description}` });
    await field.fill("Look in docs, too.");
    await field.press("Enter");
    const [steered] = await stage.requests("agent/prompt");
    const { messageId: _, ...rest } = steered ?? {};
    const content = [{ type: "text" as const, text: "Look in docs, too." }];
    assert.deepEqual(rest, {
      session: "s2",
      content,
      delivery: "steer",
      ifIdle: "reject",
      context: { open: [] },
    });
    assert.equal(await stage.value(field), "");
    const stored = { kind: "message", item: "i4", role: "user", content, at: AT } as const;
    await stage.play(told(ended({ ...LOOK, state: "completed" }), 20), {
      type: "task",
      session: "s2",
      items: [...ITEMS, stored],
    });
    assert.equal(await stage.count(field), 0);
    assert.match(await stage.text(log), /Task\s+Look for all callers\.[\s\S]*You\s+Look in docs, too\./);
    const followed = (await stage.sent()).filter((one) => one.type === "followTask");
    await stage.page.keyboard.press("Escape");
    await stage.page.getByRole("combobox", { name: "Prompt" }).waitFor();
    assert.deepEqual(followed, [
      { type: "followTask", session: "s2", isRunning: true },
      { type: "followTask", session: "s2", isRunning: false },
    ]);
    assert.deepEqual((await stage.sent()).filter((one) => one.type === "followTask").slice(2), [
      { type: "followTask" },
    ]);
  },
);

panelTest("words that a task does not take come back, and what it asks is asked beside it", async (stage) => {
  await play(stage, ...given(LOOK));
  await stage.answer({ "agent/prompt": { refused: { message: "The task has ended." } } });
  await stage.page.getByRole("button", { name: `Open: ${LOOK.description}` }).click();
  await stage.play({ type: "task", session: "s2", items: ITEMS });
  const field = stage.page.getByRole("textbox", { name: /^Message to the task/ });
  await field.fill("Wait");
  await stage.page.getByRole("button", { name: "Send to the task" }).click();
  await stage.page.getByText("The task has ended.").waitFor();
  assert.equal(await stage.value(field), "Wait");
  const request = {
    ...{ request: "p1", session: "s1", run: "r1", title: "Task t1 wants to run make", risk: "low" },
    subject: { type: "command", command: "make", cwd: "file:///w" },
    options: [{ id: "y", label: "Allow once", kind: "allowOnce" }],
  };
  await stage.play(told([{ type: "permission.requested", request }], 30));
  await stage.page.getByRole("alertdialog").getByRole("button", { name: "Allow once" }).click();
  assert.equal((await stage.requests("agent/permission/respond")).length, 1);
});

panelTest("what a task changed is reviewed, and a chosen part of it is merged and undone", async (stage) => {
  const card = await inWorktree(stage);
  const written = [FILES[0]];
  await stage.answer({ "agent/task/merge": { written, unchanged: [], checkpoint: "k1" } });
  await stage.answer({ "agent/checkpoint/restore": { restored: written, skipped: [] } });
  await card.getByRole("button", { name: "Review changes" }).click();
  assert.deepEqual(
    (await stage.sent()).filter((one) => one.type === "diffTask"),
    [{ type: "diffTask", task: "t2", name: WRITE.description }],
  );
  const merge = stage.page.getByRole("button", { name: /^Merge (all|\d)/ });
  assert.equal((await stage.text(merge)).trim(), "Merge all 4 changes");
  await stage.page.getByRole("checkbox", { name: "Merge the change at line 21" }).uncheck();
  const whole = stage.page.getByRole("checkbox", { name: "Merge src/parse.py" });
  await whole.and(stage.page.locator(":indeterminate")).waitFor();
  await stage.page.getByRole("checkbox", { name: "Merge docs/parser.png" }).uncheck();
  await stage.page.getByRole("button", { name: "Line 4" }).click();
  assert.deepEqual((await stage.sent()).at(-1), {
    type: "diffTask",
    task: "t2",
    uri: FILES[0],
    line0: 3,
    name: WRITE.description,
  });
  assert.equal((await stage.text(merge)).trim(), "Merge 2 of 4 changes");
  await merge.click();
  assert.deepEqual(await stage.requests("agent/task/merge"), [
    { id: "t2", hunks: ["h1"], files: [FILES[1]] },
  ]);
  assert.match(await stage.text(stage.page.locator(".worktree-outcome")), /Merged into src\/parse\.py\./);
  // What was merged is chosen no more.
  assert.equal(
    await stage.count(stage.page.getByRole("checkbox", { name: "Merge the change at line 4" })),
    0,
  );
  assert.equal((await stage.text(merge)).trim(), "Merge 0 of 2 changes");
  await stage.page.getByRole("checkbox", { name: "Merge src/parse.py" }).check();
  await merge.click();
  assert.deepEqual((await stage.requests("agent/task/merge"))[1], { id: "t2", hunks: ["h2"], files: [] });
  await stage.page.getByRole("button", { name: "Undo the merge" }).click();
  assert.deepEqual(await stage.requests("agent/checkpoint/restore"), [
    { checkpoint: "k1", scope: "files", onConflict: "merge" },
  ]);
  await stage.page.getByText("The merge was undone.").waitFor();
  assert.equal((await stage.text(merge)).trim(), "Merge 1 of 2 changes");
});

panelTest(
  "everything is merged from the card; a conflict is one sentence, and nothing else changes",
  async (stage) => {
    const card = await inWorktree(stage);
    const message = "src/parse.py was changed in the workspace too, so nothing was merged.";
    await stage.answer({ "agent/task/merge": { refused: { message } } });
    await card.getByRole("button", { name: "Merge" }).click();
    await stage.page.getByText(message).waitFor();
    assert.deepEqual(await stage.requests("agent/task/merge"), [{ id: "t2" }]);
    assert.equal(await stage.count(card.getByRole("button", { name: "Merge" })), 1);
  },
);

panelTest("changes are discarded after a second word", async (stage) => {
  const card = await inWorktree(stage);
  await stage.answer({ "agent/task/discard": { keptRef: "refs/tiller/kept/t2-5e11" } });
  await card.getByRole("button", { name: "Discard" }).click();
  await card.getByRole("button", { name: "Cancel" }).click();
  await card.getByRole("button", { name: "Discard" }).click();
  await card.getByRole("button", { name: "Discard changes" }).click();
  await card.getByText("refs/tiller/kept/t2-5e11").waitFor();
  assert.deepEqual(await stage.requests("agent/task/discard"), [{ id: "t2", force: true }]);
  assert.equal(await stage.count(card.getByRole("button", { name: "Review changes" })), 0);
});

panelTest(
  "the report of a task in the background is read again when the panel is built anew",
  async (stage) => {
    await stage.answer({ "agent/session/read": { items: ITEMS } });
    const task = { ...LOOK, state: "completed", background: true } as const;
    const result = "Task t1 (x) is running in the background. You are told when it has ended.";
    const events = [...given(LOOK), ...ended(task, result)].filter((one) => !one.type.startsWith("task."));
    await stage.play(HELLO, emptySnapshot({ tasks: [task] }), told([...RUNS, ...events]));
    const card = stage.page.getByRole("group", { name: `Task: ${LOOK.description}` });
    assert.match(await stage.text(card), /The parser is called from two places/);
    assert.deepEqual(await stage.requests("agent/session/read"), [{ session: "s2", limit: 5 }]);
  },
);

panelTest("another session takes no open task and no outcome along", async (stage) => {
  await play(stage, ...given(LOOK));
  await stage.page.getByRole("button", { name: `Open: ${LOOK.description}` }).click();
  const other = emptySnapshot();
  assert.ok(other.type === "snapshot");
  await stage.play({ ...other, session: "other" });
  await stage.page.getByRole("combobox", { name: "Prompt" }).waitFor();
  assert.deepEqual(
    (await stage.sent()).findLast((one) => one.type === "followTask"),
    { type: "followTask" },
  );
});
