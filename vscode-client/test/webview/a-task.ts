// Tasks as the server tells of them: one that runs, one that reported, one whose changes are in a worktree.

import type { ToPanel } from "../../src/shared/messages.js";
import type { AgentEvent, ChangeSet, Item, TaskInfo } from "../../src/shared/wire.js";
import { emptySnapshot } from "./stage.js";

const AT = "2026-01-01T00:00:00Z";

export const LOOK: TaskInfo = {
  id: "t1",
  session: "s2",
  item: "c1",
  description: "Find who calls the parser",
  preset: "explore",
  state: "running",
  background: false,
  activity: "grep parse( src",
  turns: 2,
  toolCalls: 5,
  tokens: 12_345,
  usd: 0.021,
  startedMs: Date.parse(AT),
  durationMs: 42_000,
};

export const WRITE: TaskInfo = {
  ...LOOK,
  id: "t2",
  session: "s3",
  item: "c2",
  description: "Write the tests of the parser",
  preset: "general",
  activity: "edit tests/test_parse.py",
  worktree: "t2-5e11",
};

const REPORT = `The parser is called from **two** places:

1. \`src/app.py:12\`, for each file of the folder
2. \`src/watch.py:40\`, when a file changes

Both pass the whole text. Neither looks at the encoding, so a file in Latin-1 fails in both.
A third place, \`src/old.py\`, calls it no more.
The tests cover the first place only.
I changed nothing.`;

/** The result of the call that waited for a task. */
export function reported({ id, description }: TaskInfo, report = REPORT): string {
  return `Task ${id} (${description}) completed.\nIts report:\n${report}`;
}

type Fields = { type: string; [name: string]: unknown };

/** What is told of a call that gives a task, until the task runs. */
export function given(task: TaskInfo): Fields[] {
  const call = { item: task.item, call: task.item, name: "task", title: `task: ${task.description}` };
  const input = { description: task.description, prompt: "Look for all callers.", preset: task.preset };
  return [
    { type: "tool.started", ...call },
    { type: "tool.running", ...call, input },
    {
      type: "task.created",
      task: { ...task, state: "queued", activity: "", turns: 0, toolCalls: 0, tokens: 0 },
    },
    { type: "task.updated", task },
  ];
}

/** What is told when a task has ended for which its call waited. */
export function ended(task: TaskInfo, result = reported(task), report = REPORT): Fields[] {
  const { id, session, description, preset, state, background, turns, toolCalls, worktree } = task;
  const kept = { id, session, description, preset, state, background, turns, tool_calls: toolCalls };
  return [
    { type: "task.ended", task: { ...task, activity: "" }, text: REPORT.slice(0, 400) },
    {
      type: "tool.ended",
      ...{ item: task.item, call: task.item, name: "task", status: state === "completed" ? "ok" : "error" },
      content: [{ type: "text", text: result }],
      details: { task: { ...kept, worktree: worktree ?? null }, ...(report && { report }) },
      durationMs: 42_000,
    },
  ];
}

/** Tells events of a run in a session in which nothing happened yet; `from` numbers them. */
export function told(fields: readonly Fields[], from = 2): ToPanel {
  const snapshot = emptySnapshot();
  if (snapshot.type !== "snapshot") throw new Error("a session begins with a snapshot");
  const events = fields.map(
    (one, index) => ({ seq: from + index, at: AT, run: "r1", ...one }) as unknown as AgentEvent,
  );
  return { type: "events", session: snapshot.session, events };
}

export const RUNS: Fields[] = [{ type: "run.started" }, { type: "session.state", state: "running" }];

/** The conversation of a task, as it is read when the task has ended. */
export const ITEMS: Item[] = [
  {
    kind: "message",
    item: "i1",
    role: "user",
    content: [{ type: "text", text: "Look for all callers." }],
    delivery: "prompt",
    at: AT,
  },
  {
    kind: "tool",
    ...{ item: "i2", call: "i2", name: "grep", status: "ok", at: AT },
    input: { pattern: "parse(" },
    content: [{ type: "text", text: "src/app.py:12: parse(text)" }],
  },
  { kind: "message", item: "i3", role: "assistant", content: [{ type: "text", text: REPORT }], at: AT },
] as unknown as Item[];

function place(line: number) {
  return { line, character: 0 };
}

function hunk(id: string, line: number, oldText: string, newText: string) {
  const end = (text: string) => place(line + text.split("\n").length - 1);
  return {
    ...{ id, oldText, newText, state: "pending", toolCall: "" },
    before: { start: place(line), end: end(oldText) },
    after: { start: place(line), end: end(newText) },
  };
}

/** What the second task changed: two hunks in one file, a new file, and a picture. */
export const CHANGES: ChangeSet = {
  id: "t2-5e11",
  base: "0123abc",
  files: [
    {
      ...{ uri: "file:///home/ada/project/src/parse.py", op: "modify", sha256: {}, state: "onDisk" },
      hunks: [
        hunk("h1", 3, "    return text\n", "    return text.strip()\n"),
        hunk("h2", 20, "", "def parse_lines(text):\n    return text.splitlines()\n"),
      ],
    },
    {
      ...{ uri: "file:///home/ada/project/tests/test_parse.py", op: "add", sha256: {}, state: "onDisk" },
      hunks: [
        hunk("h3", 0, "", "from parse import parse\n\n\ndef test_parse():\n    assert parse(' a ') == 'a'\n"),
      ],
    },
    {
      ...{ uri: "file:///home/ada/project/docs/parser.png", op: "add", sha256: {}, state: "onDisk" },
      ...{ binary: true, hunks: [] },
    },
  ],
} as unknown as ChangeSet;
