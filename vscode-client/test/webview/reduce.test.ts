// The reducer, fed with what a real daemon sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToPanel } from "../../src/shared/messages.js";
import type { AgentEvent, Snapshot } from "../../src/shared/wire.js";
import { type Action, reduce } from "../../src/webview/reduce.js";
import { type Row, rowsOfItems } from "../../src/webview/rows.js";
import type { SessionView } from "../../src/webview/state.js";
import { after, eventsOf, played, sessionOf } from "./reduce-helpers.js";
import { HELLO, messagesOf, readLog } from "./stage.js";

function kinds(view: SessionView): string[] {
  return view.rows.map((row) => (row.kind === "said" ? `said:${row.role}` : row.kind));
}

function row<K extends Row["kind"]>(view: SessionView, kind: K, nth = 0): Extract<Row, { kind: K }> {
  const found = view.rows.filter((one) => one.kind === kind)[nth];
  assert.ok(found, `no row ${nth} of kind ${kind}`);
  return found as Extract<Row, { kind: K }>;
}

test("a stored session reads as the live one did", () => {
  for (const name of ["edits", "permission", "thinking"]) {
    const log = readLog(name);
    const stored = rowsOfItems(log.items, {}).map((one) => [one.kind, textIn(one)]);
    const live = after(name)
      .rows.filter((one) => one.kind === "said" || one.kind === "thought" || one.kind === "tool")
      .map((one) => [one.kind, textIn(one)]);
    assert.deepEqual(stored, live, name);
  }
});

function textIn(one: Row): unknown {
  switch (one.kind) {
    case "said":
    case "thought":
      return one.text;
    case "tool":
      return [one.name, one.input, one.status === "ok", one.content];
    default:
      return "";
  }
}

test("an edit with three hunks, of which one is rejected", () => {
  const view = after("edits");
  assert.deepEqual(kinds(view), [
    "said:user",
    "thought",
    "tool",
    "said:assistant",
    "tool",
    "said:assistant",
    "runEnd",
    "edit",
  ]);
  assert.deepEqual(view.changes, { files: 1, additions: 2, deletions: 2, unreviewed: 2 });
  assert.equal(row(view, "edit").what, "rejected");
  assert.equal(view.checkpoints, 1);
  assert.equal(row(view, "runEnd").files, 1);
});

test("arguments stream, then are whole; output streams, then is whole", () => {
  const log = readLog("steering");
  const upTo = (type: AgentEvent["type"]): SessionView => {
    const [first] = messagesOf(log);
    const events = eventsOf(log);
    const at = events.findIndex((event) => event.type === type);
    assert.ok(first?.type === "snapshot" && at >= 0);
    return sessionOf(
      played([first, { type: "events", session: first.session, events: events.slice(0, at + 1) }]),
    );
  };
  const asked = row(upTo("tool.input.delta"), "tool");
  assert.equal(asked.phase, "asked");
  assert.match(asked.title, /^\$ for i in 1 2 3/);
  assert.deepEqual(Object.keys(asked.partial ?? {}), ["command"]);
  const running = row(upTo("tool.output.delta"), "tool");
  assert.equal(running.phase, "running");
  assert.equal(running.output, "step 1\n");
  const ended = row(after("steering"), "tool");
  assert.equal(ended.status, "cancelled");
  assert.equal(ended.output, "");
});

test("arguments so far replace the earlier ones, and stay as those of a call that never ran", () => {
  const [first] = messagesOf(readLog("steering"));
  assert.ok(first?.type === "snapshot");
  const of = { at: "2026-01-01T00:00:00Z", run: "r", item: "i" };
  const told = [
    { type: "tool.started", call: "c", name: "write", title: "write" },
    { type: "tool.input.delta", text: '{"pa', partial: {} },
    { type: "tool.input.delta", text: 'th": "a.py"', partial: { path: "a.py" } },
    { type: "tool.input.delta", text: ', "con' },
    { type: "tool.ended", call: "c", name: "write", status: "cancelled", content: [], details: null },
  ].map((one, at) => ({ ...of, seq: first.seq + at + 1, ...one }) as AgentEvent);
  const upTo = (count: number) =>
    sessionOf(played([first, { type: "events", session: first.session, events: told.slice(0, count) }]));
  const { partial, title } = row(upTo(4), "tool");
  assert.deepEqual([partial, title], [{ path: "a.py" }, "write a.py"]);
  const never = row(upTo(5), "tool");
  assert.deepEqual([never.partial, never.input, never.title], [undefined, { path: "a.py" }, "write a.py"]);
});

test("words that wait are in the queue, and held back after a stop", () => {
  const view = after("steering");
  assert.deepEqual(
    view.queue.map((one) => one.delivery),
    ["followUp"],
  );
  assert.equal(view.paused, true);
  assert.deepEqual(
    view.rows.flatMap((one) => (one.kind === "said" && one.role === "user" ? [one.delivery] : [])),
    ["prompt", "steer"],
  );
});

test("a permission waits outside of the transcript, and leaves a trace when it is answered", () => {
  const log = readLog("permission");
  const [first] = messagesOf(log);
  const events = eventsOf(log);
  const at = events.findIndex((event) => event.type === "permission.requested");
  assert.ok(first?.type === "snapshot" && at > 0);
  const asked = sessionOf(
    played([first, { type: "events", session: first.session, events: events.slice(0, at + 1) }]),
  );
  assert.equal(asked.pending.length, 1);
  assert.match(asked.said, /^Tiller needs your permission: Run touch/);
  const view = after("permission");
  assert.deepEqual(
    view.rows.flatMap((one) => (one.kind === "answered" ? [[one.answer, one.allowed]] : [])),
    [
      ["Allow once", true],
      ["Reject", false],
    ],
  );
});

test("a question is answered with words", () => {
  const view = after("question");
  assert.equal(row(view, "answered").allowed, true);
});

test("failures are tried again, told, and end the run with what to do", () => {
  const view = after("failing");
  assert.deepEqual(
    view.rows.flatMap((one) => (one.kind === "retry" ? [[one.errors.length, one.outcome]] : [])),
    [[2, "worked"]],
  );
  const failed = row(view, "runEnd", 1);
  assert.equal(failed.status, "failed");
  assert.equal(failed.error?.kind, "AuthRequired");
  assert.equal(row(view, "summary").text, "A summary of what was said.");
});

test("a command of the user's own, and a title", () => {
  const view = after("shell");
  assert.deepEqual(row(view, "shell").output, "one\ntwo\n");
  assert.equal(view.title, "A first look");
});

test("a snapshot in the middle of a run joins with what follows", () => {
  const log = readLog("edits");
  const [first] = messagesOf(log);
  assert.ok(first?.type === "snapshot");
  const events = eventsOf(log);
  const at = events.findIndex(
    (event) => event.type === "message.delta" && event.text.startsWith("The three"),
  );
  const half = events[at];
  assert.ok(half?.type === "message.delta");
  const words = half.text;
  // What a daemon says of an answer of which the first ten characters came.
  const snapshot: Snapshot = {
    ...first.snapshot,
    seq: half.seq - 1,
    state: "running",
    run: {
      id: half.run ?? "",
      startedAt: half.at,
      items: [
        {
          kind: "message",
          item: half.item,
          role: "assistant",
          content: [{ type: "text", text: words.slice(0, 10) }],
        },
      ],
    },
  };
  const rest = [{ ...half, text: words.slice(10) }, ...events.slice(at + 1)];
  const view = sessionOf(
    played([
      { ...first, seq: half.seq - 1, snapshot, items: log.items.slice(0, 5) },
      { type: "events", session: first.session, events: rest },
    ]),
  );
  const answers = view.rows.filter((one) => one.kind === "said" && one.role === "assistant");
  assert.equal(answers.length, 2);
  assert.deepEqual(answers.at(-1), { ...answers.at(-1), text: words, streaming: false });
});

test("the words of the composer outlive a change of session, folds and lists do not", () => {
  let state = played([HELLO, ...messagesOf(readLog("edits"))]);
  state = reduce(state, { type: "composer", action: { type: "typed", text: "half a thought" } });
  state = reduce(state, { type: "folded", key: "x", open: true });
  state = reduce(state, { type: "listed", lists: { checkpoints: [] } });
  state = played(messagesOf(readLog("failing")), state);
  assert.equal(state.composer.text, "half a thought");
  assert.deepEqual(state.folds, {});
  assert.equal(state.lists.checkpoints, undefined);
});

test("events of another session are not taken", () => {
  const state = played(messagesOf(readLog("edits")));
  const other: ToPanel = {
    type: "events",
    session: "other",
    events: [{ seq: 999, at: "", type: "session.title", title: "no" }],
  };
  assert.equal(reduce(state, other as Action), state);
});

test("a run that lost its process is told once, with the way to go on", () => {
  const run = "run-1";
  const end = { item: "e9", kind: "end" as const, run, status: "interrupted" as const, resumable: true };
  const [stored] = rowsOfItems([end], {});
  assert.ok(stored?.kind === "runEnd");
  assert.deepEqual([stored.key, stored.status, stored.resumable], [`end:${run}`, "interrupted", true]);
  const log = readLog("edits");
  const live = after("edits").rows.find((one) => one.kind === "runEnd");
  assert.ok(live?.run);
  const [again] = rowsOfItems([{ ...end, run: live.run }], {});
  assert.equal(again?.key, live.key, "the event's row and the stored one are not the same");
  assert.ok(log.items.length > 0);
});

test("a review takes the place of the one before, and outlives a change of session", () => {
  const going = played([HELLO, { type: "review", base: "main", doing: "part 1 of 2" }]);
  assert.equal(going.review?.doing, "part 1 of 2");
  const over = played([{ type: "review", base: "main", problem: "There is no commit main." }], going);
  assert.deepEqual(over.review, { type: "review", base: "main", problem: "There is no commit main." });
  const [snapshot] = messagesOf(readLog("edits")).filter((one) => one.type === "snapshot");
  assert.ok(snapshot);
  assert.equal(played([snapshot], over).review, over.review);
});

test("older items come before, and none twice", () => {
  const log = readLog("edits");
  const [first] = messagesOf(log);
  assert.ok(first?.type === "snapshot");
  const message = { ...first, items: log.items.slice(3), prev: "c" };
  const state = played([message]);
  const older = reduce(state, {
    type: "older",
    session: first.session,
    items: log.items.slice(0, 4),
    older: undefined,
  });
  assert.deepEqual(sessionOf(older).rows, rowsOfItems(log.items, {}));
  assert.equal(sessionOf(older).older, undefined);
});

test("much output keeps its end and tells how much is gone", () => {
  const [first] = messagesOf(readLog("edits"));
  assert.ok(first?.type === "snapshot");
  const at = "2026-01-01T00:00:00Z";
  const events: AgentEvent[] = Array.from({ length: 1000 }, (_, index) => ({
    seq: index + 2,
    at,
    type: "tool.output.delta",
    run: "r",
    item: "i",
    text: `${index} ${"x".repeat(994)}\n`.slice(-1000),
  }));
  const view = sessionOf(played([first, { type: "events", session: first.session, events }]));
  const tool = row(view, "tool");
  assert.ok(tool.output.length <= 400_000);
  assert.equal(tool.output.length + tool.outputCut, total(events));
});

function total(events: readonly AgentEvent[]): number {
  return events.reduce((sum, event) => sum + (event.type === "tool.output.delta" ? event.text.length : 0), 0);
}

test("what was said of the step before goes when the user goes on; what failed stays", () => {
  const told = (["info", "warning", "error"] as const).map(
    (level): Action => ({ type: "toast", level, text: level }),
  );
  const before = [HELLO, ...messagesOf(readLog("edits")), ...told].reduce(
    (state, one) => reduce(state, one as Action),
    played([]),
  );
  const [other] = messagesOf(readLog("steering"));
  const steps: Action[] = [
    { type: "composer", action: { type: "cleared", sent: "Go on." } },
    other as Action,
  ];
  for (const step of steps) {
    assert.equal(before.toasts.length, 3);
    assert.deepEqual(
      reduce(before, step).toasts.map((one) => one.level),
      ["error"],
    );
  }
});

test("the refusal of a prompt goes with the next prompt, and when a model is chosen", () => {
  const start = played([HELLO, ...messagesOf(readLog("edits"))]);
  const session = sessionOf(start);
  const config = { ...session.config, model: null };
  const refused: Action = { type: "toast", level: "error", text: "No model.", about: "prompt" };
  const failed: Action = { type: "toast", level: "error", text: "Lost." };
  const before = [refused, failed].reduce(reduce, { ...start, session: { ...session, config } });
  const chosen = { ...config, model: "lab/m" };
  const seq = session.seq + 1;
  const steps: [Action, string[]][] = [
    [{ type: "composer", action: { type: "cleared", sent: "Again." } }, ["Lost."]],
    [
      {
        type: "events",
        session: session.session,
        events: [{ seq, at: "2026-01-01T00:00:00Z", type: "session.config", config: chosen }],
      } as unknown as Action,
      ["Lost."],
    ],
    [{ type: "went", place: "models" }, ["No model.", "Lost."]],
  ];
  for (const [step, left] of steps)
    assert.deepEqual(
      reduce(before, step).toasts.map((one) => one.text),
      left,
    );
});

test("a thought stops thinking when words follow, before the answer is stored", () => {
  const sent = messagesOf(readLog("thinking")).map((message) =>
    message.type === "events"
      ? { ...message, events: message.events.filter((one) => one.type !== "thought.ended") }
      : message,
  );
  const words = sent.findIndex(
    (message) => message.type === "events" && message.events.some((one) => one.type === "message.delta"),
  );
  assert.ok(words > 0);
  assert.equal(row(sessionOf(played([HELLO, ...sent.slice(0, words + 1)])), "thought").streaming, false);
});
