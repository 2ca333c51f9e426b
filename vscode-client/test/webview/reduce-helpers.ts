// Plays recorded messages into the reducer.

import assert from "node:assert/strict";
import type { ToPanel } from "../../src/shared/messages.js";
import type { AgentEvent } from "../../src/shared/wire.js";
import { type Action, reduce } from "../../src/webview/reduce.js";
import { type PanelState, type SessionView, START } from "../../src/webview/state.js";
import { HELLO, type Log, messagesOf, readLog } from "./stage.js";

export function played(messages: readonly ToPanel[], from: PanelState = START): PanelState {
  return messages.reduce((state, message) => reduce(state, message as Action), from);
}

export function sessionOf(state: PanelState): SessionView {
  assert.ok(state.session);
  return state.session;
}

/** Gives the session as a whole log leaves it. */
export function after(name: string): SessionView {
  return sessionOf(played([HELLO, ...messagesOf(readLog(name))]));
}

export function eventsOf(log: Log): AgentEvent[] {
  return messagesOf(log).flatMap((message) => (message.type === "events" ? message.events : []));
}
