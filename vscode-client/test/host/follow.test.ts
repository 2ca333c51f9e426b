import assert from "node:assert/strict";
import { test } from "node:test";
import { follow } from "../../src/host/agent/follow.js";
import { frame, snapshot } from "./support/fake-port.js";

const at = { epoch: "e1", seq: 4 };

test("a frame that follows is taken", () => {
  const step = follow(at, frame(5, 7));
  assert.equal(step.do, "take");
  assert.deepEqual(step.do === "take" && [step.cursor.seq, step.events.map((one) => one.seq)], [
    7,
    [5, 6, 7],
  ]);
});

test("a frame that lies before is passed over", () => {
  assert.deepEqual(follow(at, frame(2, 4)), { do: "ignore" });
});

test("of a frame that overlaps only what is new is taken", () => {
  const step = follow(at, frame(3, 6));
  assert.deepEqual(step.do === "take" && step.events.map((one) => one.seq), [5, 6]);
});

test("a hole, another epoch and a heartbeat from ahead ask for a new subscription", () => {
  assert.equal(follow(at, frame(6, 7)).do, "resubscribe");
  assert.equal(follow(at, frame(5, 7, "e2")).do, "resubscribe");
  const beat = { kind: "agent/heartbeat", session: "s1", epoch: "e1" } as const;
  assert.equal(follow(at, { ...beat, seq: 5 }).do, "resubscribe");
  assert.equal(follow(at, { ...beat, seq: 4 }).do, "ignore");
});

test("a snapshot replaces everything, and a gap is read anew", () => {
  const whole = snapshot({ seq: 9 });
  const step = follow(at, { kind: "agent/snapshot", session: "s1", epoch: "e2", seq: 9, snapshot: whole });
  assert.deepEqual(step.do === "replace" && step.cursor, { epoch: "e2", seq: 9 });
  const gap = follow(at, { kind: "agent/gap", session: "s1", epoch: "e1", from: 5, to: 8 });
  assert.deepEqual(gap, { do: "reread", cursor: { epoch: "e1", seq: 8 } });
});
