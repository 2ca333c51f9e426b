// The methods of the server that the panel may ask for. What is not here the panel cannot reach.

import type { AgentRequests } from "./wire.js";

export const PANEL_METHODS = [
  "agent/session/open",
  "agent/session/list",
  "agent/session/read",
  "agent/session/configure",
  "agent/session/fork",
  "agent/session/delete",
  "agent/session/tree",
  "agent/session/navigate",
  "agent/session/label",
  "agent/session/rename",
  "agent/session/stats",
  "agent/blob/read",
  "agent/prompt",
  "agent/steer",
  "agent/followUp",
  "agent/queue/update",
  "agent/run/cancel",
  "agent/run/retry",
  "agent/compact",
  "agent/auth/status",
  "agent/plan/respond",
  "agent/background/move",
  "agent/background/stop",
  "agent/task/resume",
  "agent/task/stop",
  "agent/task/changes",
  "agent/task/merge",
  "agent/task/discard",
  "agent/bash",
  "agent/checkpoint/list",
  "agent/checkpoint/preview",
  "agent/checkpoint/restore",
  "agent/changes/list",
  "agent/changes/resolve",
  "agent/permission/respond",
  "agent/costs",
  "agent/permission/rules",
  "agent/question/respond",
  "agent/model/list",
  "agent/model/cycle",
  "agent/thinking/cycle",
  "agent/command/list",
  "agent/command/complete",
  "agent/resources/reload",
  "agent/extension/list",
  "agent/extension/press",
  "agent/extension/render",
  "agent/status",
] as const;

export type PanelMethod = (typeof PANEL_METHODS)[number];

type Fields<M extends PanelMethod> = keyof AgentRequests[M]["params"];
/** What has no fields at all has any string as a key. */
type OfNoSession = {
  [M in PanelMethod]: string extends Fields<M> ? M : "session" extends Fields<M> ? never : M;
}[PanelMethod];

/** Methods whose params have no `session`: the server refuses fields that a method does not have. */
const ofNoSession: Readonly<Record<OfNoSession, true>> = {
  "agent/blob/read": true,
  "agent/auth/status": true,
  "agent/costs": true,
  "agent/permission/respond": true,
  "agent/permission/rules": true,
  "agent/question/respond": true,
  "agent/session/list": true,
  "agent/status": true,
};

const known: ReadonlySet<string> = new Set(PANEL_METHODS);

export function isPanelMethod(name: unknown): name is PanelMethod {
  return typeof name === "string" && known.has(name);
}

export function takesSession(method: PanelMethod): boolean {
  return !(method in ofNoSession);
}
