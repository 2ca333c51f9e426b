import assert from "node:assert/strict";
import { test } from "node:test";
import { SessionFeed } from "../../src/host/agent/session-feed.js";
import { TranscriptLink } from "../../src/host/panel/transcript-link.js";
import type { ToPanel } from "../../src/shared/messages.js";
import { FakePort, frame, settled, snapshot, untilAborted } from "./support/fake-port.js";

/** Timers that go off when the test says so. */
function handTimers() {
  const waiting = new Set<() => void>();
  return {
    timers: {
      after: (_ms: number, act: () => void) => {
        waiting.add(act);
        return { cancel: () => waiting.delete(act) };
      },
    },
    goOff: () => {
      for (const act of [...waiting]) {
        waiting.delete(act);
        act();
      }
    },
  };
}

function stage(port: FakePort) {
  const posted: ToPanel[] = [];
  const { timers, goOff } = handTimers();
  const feed = new SessionFeed(port, settled);
  const link = new TranscriptLink(
    feed,
    (message) => posted.push(message),
    () => undefined,
    timers,
  );
  return { feed, link, posted, goOff };
}

/** What was posted, as the panel counts: the place of a snapshot, then the places of events. */
function told(posted: ToPanel[]): unknown[] {
  return posted.map((one) =>
    one.type === "snapshot"
      ? one.seq
      : one.type === "events"
        ? one.events.map((event) => event.seq)
        : one.type,
  );
}

function port(): FakePort {
  return new FakePort().on("agent/session/open", () => snapshot()).on("agent/subscribe", untilAborted);
}

test("a panel that is ready before the session is opened gets its picture when it is", async () => {
  const { feed, link, posted } = stage(port());
  await link.show();
  await feed.open();
  await settled();
  assert.deepEqual(told(posted), [4]);
  feed.dispose();
});

test("events that come together are told together", async () => {
  const server = port();
  const { feed, link, posted, goOff } = stage(server);
  await feed.open();
  await link.show();
  for (let seq = 5; seq < 25; seq += 1) server.send(frame(seq, seq));
  assert.deepEqual(told(posted), [4]);
  goOff();
  assert.deepEqual(told(posted), [4, Array.from({ length: 20 }, (_, place) => 5 + place)]);
  feed.dispose();
});

test("what comes while a picture is on its way follows it without a hole and without a repetition", async () => {
  const server = port();
  const { feed, link, posted, goOff } = stage(server);
  await feed.open();
  await settled();
  let give = () => undefined as unknown;
  server.on("agent/session/open", () => new Promise((done) => (give = () => done(snapshot({ seq: 6 })))));
  const shown = link.show();
  server.send(frame(5, 6));
  server.send(frame(7, 8));
  give();
  await shown;
  server.send(frame(9, 9));
  goOff();
  assert.deepEqual(told(posted), [6, [7, 8], [9]]);
  feed.dispose();
});

test("a gap and another branch are read anew", async () => {
  const server = port();
  const { feed, link, posted } = stage(server);
  await feed.open();
  await link.show();
  server.send({ kind: "agent/gap", session: "s1", epoch: "e1", from: 5, to: 8 });
  await settled();
  const moved = { seq: 9, at: "2026-11-22T00:00:00.000Z", type: "leaf.moved", leaf: "b", from: "a" } as const;
  server.send({ kind: "agent/events", session: "s1", epoch: "e1", from: 9, to: 9, events: [moved] });
  await settled();
  assert.deepEqual(
    posted.map((one) => one.type),
    ["snapshot", "snapshot", "snapshot"],
  );
  feed.dispose();
});
