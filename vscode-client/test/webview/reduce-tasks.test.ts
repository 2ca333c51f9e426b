// Tasks in the state of the panel, and what is worked out of them.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToolRow } from "../../src/webview/rows.js";
import type { PanelState } from "../../src/webview/state.js";
import { chosenOf, followedTask, reportOf, spentText, taskNamed, taskOf } from "../../src/webview/tasks.js";
import { CHANGES, ended, given, ITEMS, LOOK, RUNS, told, WRITE } from "./a-task.js";
import { played, sessionOf } from "./reduce-helpers.js";
import { emptySnapshot, HELLO } from "./stage.js";

const DONE = { ...LOOK, state: "completed" } as const;

function begun(...fields: Parameters<typeof told>[0][number][]): PanelState {
  return played([HELLO, emptySnapshot(), told([...RUNS, ...fields])]);
}

function callsOf(state: PanelState): ToolRow[] {
  return sessionOf(state).rows.filter((row) => row.kind === "tool");
}

test("each call has its task, while it runs and after it, also when the session tells of it no more", () => {
  const running = begun(...given(LOOK), ...given(WRITE));
  const { tasks } = sessionOf(running);
  assert.deepEqual(
    callsOf(running).map((row) => taskOf(row, tasks)?.id),
    ["t1", "t2"],
  );
  const [row] = callsOf(begun(...given(LOOK), ...ended(DONE)));
  assert.ok(row);
  assert.equal(taskOf(row, [{ ...DONE, item: undefined } as never])?.tokens, LOOK.tokens);
  const { id, session, state, toolCalls, tokens } = taskOf(row, []) ?? {};
  assert.deepEqual(
    { id, session, state, toolCalls, tokens },
    {
      ...{ id: "t1", session: "s2", state: "completed", toolCalls: 5 },
      tokens: undefined,
    },
  );
  const forgotten = { ...sessionOf(begun(...given(LOOK), ...ended(DONE))), tasks: [] };
  assert.equal(taskNamed(forgotten, "t1")?.session, "s2");
  assert.equal(taskNamed(forgotten, "t9"), undefined);
});

test("tasks keep their order when they are told of again", () => {
  const state = begun(...given(LOOK), ...given(WRITE), { type: "task.updated", task: { ...LOOK, turns: 3 } });
  assert.deepEqual(
    sessionOf(state).tasks.map(({ id, turns }) => [id, turns]),
    [
      ["t1", 3],
      ["t2", 2],
    ],
  );
});

test("a report is that of the call, without what is for the model, else what the event brought", () => {
  const result = "Task t1 (x) completed.\nIts report:\nFirst line\nSecond line";
  const state = begun(...given(LOOK), ...ended(DONE, result, "First line\nSecond line"));
  const [row] = callsOf(state);
  assert.ok(row);
  assert.equal(reportOf(row, DONE, {}), "First line\nSecond line");
  const waits = begun(...given(LOOK), ...ended(DONE, "Task t1 (x) is running in the background.", ""));
  const [other] = callsOf(waits);
  assert.ok(other);
  assert.match(reportOf(other, DONE, sessionOf(waits).reports), /^The parser is called/);
  assert.equal(reportOf(other, DONE, {}), "");
  assert.match(sessionOf(waits).said, /Find who calls the parser has ended: completed/);
});

test("what a task has used is one line", () => {
  assert.equal(spentText(DONE, 0), "2 answers · 5 tool calls · 12.3k tokens · $0.02 · 42 s");
  const soon = { ...LOOK, turns: 1, toolCalls: 0, tokens: 0, startedMs: 1000 };
  const { usd: _, ...free } = soon;
  assert.equal(spentText(free, 66_000), "1 answer · 1 min 5 s");
});

test("the open task is followed while it runs, and read when it has ended", () => {
  const opened = (state: PanelState) =>
    played([{ type: "taskOpened", task: { id: "t1", session: "s2" } } as never], state);
  assert.equal(followedTask(begun(...given(LOOK))), undefined);
  const open = opened(begun(...given(LOOK)));
  assert.deepEqual(followedTask(open), { session: "s2", isRunning: true });
  const queued = opened(begun({ type: "task.created", task: { ...LOOK, state: "queued" } }));
  assert.equal(followedTask(queued), undefined);
  const over = played([told(ended(DONE), 20)], open);
  assert.deepEqual(followedTask(over), { session: "s2", isRunning: false });
  const read = played([{ type: "task", session: "s2", items: ITEMS, prev: "p" }], over);
  assert.deepEqual(
    read.task?.view?.rows.map((row) => row.kind),
    ["said", "tool", "said"],
  );
  const older = played(
    [{ type: "older", session: "s2", items: ITEMS.slice(0, 1), older: undefined } as never],
    read,
  );
  assert.equal(older.task?.view?.older, undefined);
  assert.equal(sessionOf(older).rows.length, sessionOf(open).rows.length);
  const stranger = played([{ type: "task", session: "s9", items: ITEMS }], over);
  assert.equal(stranger.task?.view, undefined);
  assert.equal(played([{ type: "went", place: "transcript" } as never], read).task, undefined);
});

test("what is chosen is whole files, and hunks of files of which a part is left out or merged", () => {
  const review = { task: "t2", changeSet: CHANGES, left: new Set<string>() };
  const [parse, tests, picture = ""] = CHANGES.files.map(({ uri }) => uri);
  const parts = ["h1", "h2", "h3", picture];
  const none = new Set<string>();
  assert.deepEqual(chosenOf(review, none), {
    ...{ files: [parse, tests, picture], hunks: [], parts, isAll: true, total: 4 },
  });
  assert.deepEqual(chosenOf({ ...review, left: new Set(["h2", picture]) }, none), {
    ...{ files: [tests], hunks: ["h1"], parts: ["h1", "h3"], isAll: false, total: 4 },
  });
  assert.deepEqual(chosenOf({ ...review, left: new Set([picture]) }, new Set(["h1", "h3"])), {
    ...{ files: [], hunks: ["h2"], parts: ["h2"], isAll: false, total: 2 },
  });
  assert.deepEqual(chosenOf(review, "all").total, 0);
});
