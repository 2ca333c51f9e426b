// What holds of the reducer for every recorded log.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToPanel } from "../../src/shared/messages.js";
import { type Action, reduce } from "../../src/webview/reduce.js";
import { START } from "../../src/webview/state.js";
import { after, eventsOf, played, sessionOf } from "./reduce-helpers.js";
import { messagesOf, readLog } from "./stage.js";

const LOGS = ["edits", "permission", "steering", "failing", "shell", "question", "thinking"];

for (const name of LOGS) {
  test(`${name}: it does not matter how the events are packed`, () => {
    const log = readLog(name);
    const [first] = messagesOf(log);
    assert.ok(first?.type === "snapshot");
    const events = eventsOf(log);
    const pack = (size: number): ToPanel[] => {
      const packed: ToPanel[] = [first];
      for (let at = 0; at < events.length; at += size) {
        packed.push({ type: "events", session: first.session, events: events.slice(at, at + size) });
      }
      return packed;
    };
    const whole = sessionOf(played(pack(events.length || 1)));
    assert.deepEqual(sessionOf(played(pack(1))), whole);
    assert.deepEqual(sessionOf(played(pack(3))), whole);
  });

  test(`${name}: events that come twice change nothing`, () => {
    const [first, ...rest] = messagesOf(readLog(name));
    assert.ok(first);
    const twice = rest.flatMap((message) => [message, message]);
    assert.deepEqual(sessionOf(played([first, ...twice])), sessionOf(played([first, ...rest])));
  });

  test(`${name}: no state that was given is changed`, () => {
    const messages = messagesOf(readLog(name));
    let state = START;
    for (const message of messages) {
      const before = structuredClone(state);
      const next = reduce(state, message as Action);
      assert.deepEqual(state, before);
      state = next;
    }
  });

  test(`${name}: when it is over nothing goes on`, () => {
    const view = after(name);
    assert.equal(view.run, undefined);
    assert.equal(view.state, "idle");
    assert.deepEqual(view.pending, []);
    for (const one of view.rows) {
      if (one.kind === "said" || one.kind === "thought") assert.equal(one.streaming, false);
      if (one.kind === "tool") assert.equal(one.phase, "ended");
      if (one.kind === "shell") assert.equal(one.ended, true);
      if (one.kind === "summary") assert.equal(one.going, false);
      if (one.kind === "retry") assert.notEqual(one.outcome, "waiting");
    }
  });
}
