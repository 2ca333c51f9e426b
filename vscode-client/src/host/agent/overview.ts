// What the status bar, the keys and the editor need to know of a session: a small picture, kept by events. Pure.

import type {
  AgentEvent,
  ContextUse,
  Cost,
  PermissionRequest,
  Question,
  SessionState,
  Snapshot,
  Usage,
} from "../../shared/wire.js";

export interface Overview {
  session: string;
  title: string | undefined;
  state: SessionState;
  run: string | undefined;
  model: string | null;
  thinking: string;
  mode: string;
  context: ContextUse;
  cost: Cost | undefined;
  unreviewed: number;
  pending: (PermissionRequest | Question)[];
}

export function overviewOf(snapshot: Snapshot): Overview {
  return {
    session: snapshot.session,
    title: snapshot.title,
    state: snapshot.state,
    run: snapshot.run?.id,
    model: snapshot.config.model,
    thinking: snapshot.config.thinking,
    mode: snapshot.config.mode,
    unreviewed: snapshot.changes.unreviewed,
    pending: snapshot.pending,
    ...spent(snapshot.usage),
  };
}

/** Gives the picture after an event. */
export function after(overview: Overview, event: AgentEvent): Overview {
  switch (event.type) {
    case "session.state":
      return { ...overview, state: event.state };
    case "session.title":
      return { ...overview, title: event.title ?? undefined };
    case "session.config": {
      const { model, thinking, mode } = event.config;
      return { ...overview, model, thinking, mode };
    }
    case "model.changed":
      return { ...overview, model: event.model, thinking: event.thinking };
    case "session.usage":
      return { ...overview, ...spent(event.usage) };
    case "run.started":
      return { ...overview, run: event.run };
    case "run.ended":
      return { ...overview, run: undefined };
    case "changes.updated":
      return { ...overview, unreviewed: event.unreviewed };
    case "permission.requested":
    case "question.requested":
      return { ...overview, pending: [...without(overview, event.request.request), event.request] };
    case "permission.resolved":
    case "question.resolved":
      return { ...overview, pending: without(overview, event.request) };
    default:
      return overview;
  }
}

function spent(usage: Usage): Pick<Overview, "context" | "cost"> {
  return { context: usage.context, cost: usage.cost };
}

function without(overview: Overview, request: string): (PermissionRequest | Question)[] {
  return overview.pending.filter((one) => one.request !== request);
}
