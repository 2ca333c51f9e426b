import assert from "node:assert/strict";
import { test } from "node:test";
import { Others, type RunEnd } from "../../src/host/agent/others.js";
import { SessionFeed } from "../../src/host/agent/session-feed.js";
import { joined, ownersIn } from "../../src/host/editor/hunks.js";
import { endText, statusText } from "../../src/host/ui/status-text.js";
import type { AgentEvent, Frame, PermissionRequest, RunView, Snapshot } from "../../src/shared/wire.js";
import { FakePort, settled, snapshot, untilAborted } from "./support/fake-port.js";

const AT = "2026-01-01T00:00:00Z";
const ASKED = { request: "q1", title: "Run pip install" } as PermissionRequest;
const RUNNING = { state: "running", run: { id: "r" } as RunView } as const;

class Window {
  readonly port = new FakePort();
  readonly feed = new SessionFeed(this.port, settled);
  readonly ends: RunEnd[] = [];
  kept: readonly string[] = [];
  readonly others = new Others(
    this.port,
    this.feed,
    {
      get: () => this.kept,
      set: (ids) => {
        this.kept = ids;
      },
    },
    settled,
  );

  constructor() {
    this.port.on("agent/session/open", ({ session }) => snapshot({ session: String(session ?? "s1") }));
    this.port.on("agent/subscribe", untilAborted);
    this.others.ended.listen((end) => this.ends.push(end));
  }

  /** Sends the picture of a session that is not in front, and then what happens in it. */
  tell(session: string, more: Partial<Snapshot>, ...events: object[]): void {
    const whole = snapshot({ session, ...more });
    const seqs = events.map((event, place) => ({ seq: 5 + place, at: AT, ...event }) as AgentEvent);
    const frames: Frame[] = [{ kind: "agent/snapshot", session, epoch: "e1", seq: 4, snapshot: whole }];
    if (seqs.length > 0)
      frames.push({ kind: "agent/events", session, epoch: "e1", from: 5, to: 4 + seqs.length, events: seqs });
    const [, listener] = [...this.port.tokens].find(([token]) => token.includes(session)) ?? [];
    for (const frame of frames) listener?.(frame);
  }
}

async function left(): Promise<Window> {
  const window = new Window();
  await window.feed.open("s1");
  await window.feed.open("new");
  await settled();
  return window;
}

test("a question of a session that is not in front is known, and leaves with its answer", async () => {
  const window = await left();
  window.tell("s1", RUNNING, { type: "permission.requested", request: ASKED });
  const [other] = window.others.all;
  assert.deepEqual(other?.pending, [ASKED]);
  const shown = statusText({ ready: true }, { ...other, pending: [], state: "idle" }, window.others.all);
  assert.match(shown.text, /Tiller asks/);
  assert.equal(shown.colour, "warning");
  assert.match(shown.label, /another session needs your answer/);
  await window.feed.open("s1");
  assert.deepEqual(window.others.all.map((one) => one.session).includes("s1"), false);
  window.others.dispose();
  window.feed.dispose();
});

test("no session is opened for it, so the one in front stays what a reloaded window gets", async () => {
  const window = await left();
  window.tell("s1", RUNNING);
  const opened = window.port.asked.filter((one) => one.method === "agent/session/open");
  assert.deepEqual(
    opened.map((one) => one.params["session"]),
    ["s1", "new"],
  );
  assert.deepEqual(window.kept, ["s1"]);
  window.others.dispose();
  window.feed.dispose();
});

test("the end of its run is told, with the error, and then it is followed no more", async () => {
  const window = await left();
  window.tell(
    "s1",
    { ...RUNNING, title: "Parse (dates)" },
    { type: "run.ended", run: "r", status: "failed", error: { message: "the key is wrong" } },
    { type: "session.state", state: "error" },
  );
  const [end] = window.ends;
  assert.ok(end);
  assert.deepEqual(endText(end.overview, end.event, { isFront: false }), {
    text: "Tiller stopped in “Parse  dates”: the key is wrong",
    failed: true,
  });
  const untitled = { ...end.overview, title: undefined };
  assert.equal(endText(untitled, end.event, { isFront: true }).text, "Tiller stopped: the key is wrong");
  assert.deepEqual(window.others.all, []);
  assert.deepEqual(window.others.unread, ["s1"]);
  assert.deepEqual(window.kept, []);
  window.feed.dispose();
});

test("one with changes to review stays known after its run, and after a reload", async () => {
  const changes = { files: 1, additions: 1, deletions: 0, unreviewed: 2 };
  const window = await left();
  window.tell("s1", { changes });
  assert.deepEqual(
    window.others.all.map((one) => one.unreviewed),
    [2],
  );
  const again = new Window();
  again.kept = window.kept;
  await again.feed.open("s9");
  again.others.again();
  await settled();
  again.tell("s1", { changes });
  assert.deepEqual(
    again.others.all.map((one) => one.session),
    ["s1"],
  );
  for (const one of [window, again]) {
    one.others.dispose();
    one.feed.dispose();
  }
});

test("what waits in several sessions stands together, and each knows whose it is", () => {
  const hunk = (id: string, line: number) => {
    const place = { start: { line, character: 0 }, end: { line: line + 1, character: 0 } };
    return {
      id,
      before: place,
      after: place,
      oldText: "",
      newText: "",
      state: "pending",
      toolCall: "",
    } as const;
  };
  const sets = [
    { session: "s1", files: [{ uri: "file:///b", op: "modify" as const, hunks: [hunk("h2", 7)] }] },
    {
      session: "s2",
      files: [
        { uri: "file:///b", op: "modify" as const, hunks: [hunk("h1", 2)] },
        { uri: "file:///a", op: "add" as const, hunks: [hunk("h3", 0)] },
      ],
    },
  ];
  const files = joined(sets.map((one) => one.files));
  assert.deepEqual(
    files.map((file) => [file.uri, file.hunks.map(({ id }) => id)]),
    [
      ["file:///a", ["h3"]],
      ["file:///b", ["h1", "h2"]],
    ],
  );
  const owners = ownersIn(sets);
  assert.deepEqual(owners.get("h1"), ["s2"]);
  assert.deepEqual(owners.get("file:///b"), ["s1", "s2"]);
});
