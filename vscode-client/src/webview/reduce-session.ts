// Takes snapshots and events into the session that is shown.

import type { SnapshotMessage } from "../shared/messages.js";
import type { AgentEvent, RunEnded, TaskInfo } from "../shared/wire.js";
import { permissionResolved, questionResolved, uiChanged, viewsOf, wordOf } from "./reduce-asked.js";
import * as items from "./reduce-items.js";
import { type Draft, OUTPUT_KEPT, put } from "./reduce-items.js";
import { type Row, rowsOfItems } from "./rows.js";
import type { SessionView } from "./state.js";
import { costText } from "./words.js";

/** Gives the session of a snapshot. What the panel itself fetched for the same session is kept. */
export function sessionOf(message: SnapshotMessage, before: SessionView | undefined): SessionView {
  const { snapshot } = message;
  const same = before?.session === message.session ? before : undefined;
  const older = rowsOfItems(message.items ?? [], {});
  const live = snapshot.run ? rowsOfItems(snapshot.run.items, { run: snapshot.run.id }) : [];
  return {
    session: message.session,
    epoch: message.epoch,
    seq: message.seq,
    state: snapshot.state,
    title: snapshot.title,
    run: snapshot.run && { id: snapshot.run.id, startedAt: snapshot.run.startedAt },
    rows: [...older, ...live],
    older: message.prev,
    queue: snapshot.queue,
    paused: snapshot.paused ?? false,
    pending: snapshot.pending,
    config: snapshot.config,
    usage: snapshot.usage,
    roots: snapshot.roots,
    changes: snapshot.changes,
    changeSet: same?.changeSet,
    checkpoints: snapshot.checkpoints.count,
    clients: snapshot.clients,
    sandbox: snapshot.sandbox,
    plan: same?.plan ?? [],
    background: snapshot.background ?? [],
    tasks: snapshot.tasks ?? [],
    reports: same?.reports ?? {},
    activity: snapshot.activity ?? {},
    views: viewsOf(snapshot, same),
    said: "",
  };
}

/** Gives the session after these events. Events that it has already are passed over. */
export function follow(view: SessionView, events: readonly AgentEvent[]): SessionView {
  const draft: Draft = { ...view, rows: view.rows.slice() };
  for (const event of events) {
    if (event.seq <= draft.seq) continue;
    draft.seq = event.seq;
    const step = STEPS[event.type] as ((draft: Draft, event: AgentEvent) => void) | undefined;
    step?.(draft, event);
  }
  return draft;
}

/** The event of a type; some events have several types. */
type Of<T, E = AgentEvent> = E extends { type: infer U } ? (T extends U ? E : never) : never;
type Steps = { [T in AgentEvent["type"]]?: (draft: Draft, event: Of<T>) => void };

const STEPS: Steps = {
  "message.started": items.messageStarted,
  "message.delta": items.messageDelta,
  "message.ended": items.messageEnded,
  "thought.started": items.thoughtStarted,
  "thought.delta": items.thoughtDelta,
  "thought.ended": items.thoughtEnded,
  "tool.started": items.toolStarted,
  "tool.input.delta": items.toolInput,
  "tool.running": items.toolRunning,
  "tool.output.delta": items.toolOutput,
  "tool.ended": items.toolEnded,
  "edit.proposed": items.editToldOf,
  "edit.conflict": items.editToldOf,
  "edit.rejected": items.editToldOf,
  "edit.undone": items.editToldOf,
  "edit.applied": items.editApplied,
  "session.state": (draft, event) => {
    draft.state = event.state;
  },
  "session.config": (draft, event) => {
    draft.config = event.config;
  },
  "session.usage": (draft, event) => {
    draft.usage = event.usage;
  },
  "session.title": (draft, event) => {
    draft.title = event.title ?? undefined;
  },
  "session.roots": (draft, event) => {
    draft.roots = event.roots;
  },
  "session.clients": (draft, event) => {
    draft.clients = event.clients;
  },
  "queue.changed": (draft, event) => {
    draft.queue = event.queue;
    draft.paused = event.paused ?? false;
  },
  "model.changed": (draft, event) => {
    draft.config = { ...draft.config, model: event.model, thinking: event.thinking };
  },
  "changes.updated": (draft, { files, additions, deletions, unreviewed }) => {
    draft.changes = { files, additions, deletions, unreviewed };
  },
  "plan.updated": (draft, event) => {
    draft.plan = event.plan;
  },
  "checkpoint.created": (draft) => {
    draft.checkpoints += 1;
  },
  "checkpoint.restored": (draft, event) => {
    notice(draft, event, "info", "The files are as they were at the checkpoint.");
  },
  "run.started": (draft, event) => {
    draft.run = { id: event.run, startedAt: event.at };
    draft.plan = [];
    // Only the newest run can be gone on with.
    draft.rows = draft.rows.map((row) =>
      row.kind === "runEnd" && !row.superseded ? { ...row, resumable: false, superseded: true } : row,
    );
    draft.said = "Tiller is working.";
  },
  "run.ended": runEnded,
  "retry.started": (draft, event) => {
    const before = draft.rows.findLast((row) => row.kind === "retry" && row.run === event.run);
    const open = before?.kind === "retry" && before.outcome !== "worked" ? before : undefined;
    put(draft, {
      key: open?.key ?? `retry:${event.run}:${event.attempt}`,
      run: event.run,
      at: event.at,
      kind: "retry",
      attempt: event.attempt,
      maxAttempts: event.maxAttempts,
      untilMs: Date.parse(event.at) + event.delayMs,
      errors: [...(open?.errors ?? []), event.error.message],
      outcome: "waiting",
    });
    draft.said = `${event.error.message}. It is tried again.`;
  },
  "retry.ended": (draft, event) => {
    settleRetries(draft, event.run, event.success ? "worked" : "gaveUp");
  },
  "compaction.started": (draft, event) => {
    draft.rows.push({ key: `compaction:${event.seq}`, at: event.at, kind: "summary", text: "", going: true });
    draft.said = "Compacting the conversation.";
  },
  "compaction.ended": (draft, event) => {
    const at = draft.rows.findLastIndex((row) => row.kind === "summary" && row.going);
    const row: Row = {
      key: draft.rows[at]?.key ?? `compaction:${event.seq}`,
      at: event.at,
      kind: "summary",
      text: event.summary ?? "",
      tokensBefore: event.tokensBefore,
      tokensAfter: event.tokensAfter,
      going: false,
      error:
        event.error?.message ??
        (event.aborted ? "Compaction was stopped; the conversation is unchanged." : undefined),
    };
    put(draft, row);
  },
  "permission.requested": (draft, event) => {
    draft.pending = [...draft.pending.filter((one) => one.request !== event.request.request), event.request];
    draft.said = `Tiller needs your permission: ${event.request.title}`;
  },
  "permission.resolved": permissionResolved,
  "question.requested": (draft, event) => {
    draft.pending = [...draft.pending.filter((one) => one.request !== event.request.request), event.request];
    draft.said = `A question: ${event.request.questions[0]?.text ?? ""}`;
  },
  "question.resolved": questionResolved,
  "bash.started": (draft, event) => {
    const row = { key: `shell:${event.seq}`, at: event.at, command: event.command, output: "" };
    draft.rows.push({ ...row, kind: "shell", ended: false, exitCode: null });
  },
  "bash.output": (draft, event) => {
    const at = lastShell(draft);
    const row = draft.rows[at];
    if (row?.kind === "shell")
      draft.rows[at] = { ...row, output: (row.output + event.text).slice(-OUTPUT_KEPT) };
  },
  "bash.ended": (draft, event) => {
    const at = lastShell(draft);
    const row = draft.rows[at];
    if (row?.kind !== "shell") return;
    draft.rows[at] = { ...row, output: event.output ?? row.output, ended: true, exitCode: event.exitCode };
  },
  "background.started": (draft, event) => {
    draft.background = [...draft.background.filter((one) => one.id !== event.command.id), event.command];
  },
  "background.listening": (draft, { id, ports }) => {
    draft.background = draft.background.map((one) => (one.id === id ? { ...one, ports } : one));
  },
  "background.ended": (draft, event) => {
    const one = draft.background.find((each) => each.id === event.id);
    draft.background = draft.background.filter((each) => each.id !== event.id);
    if (one && event.by === "itself") notice(draft, event, "info", backgroundEnd(one.command, event));
  },
  notice: (draft, event) => {
    notice(draft, event, levelOf(event.level), event.text);
  },
  error: (draft, event) => {
    const { message, hint, kind } = event.error;
    notice(draft, event, "error", message, { hint, errorKind: kind });
  },
  "extension.error": (draft, event) => {
    notice(
      draft,
      event,
      "warning",
      `The extension ${event.extension} failed at ${event.event}: ${event.error}`,
    );
  },
  "ui.notify": (draft, event) => {
    notice(draft, event, levelOf(wordOf(event.view["level"])), wordOf(event.view["text"]));
  },
  "ui.status": uiChanged,
  "ui.widget": uiChanged,
  "ui.title": uiChanged,
  "task.created": (draft, event) => putTask(draft, event.task),
  "task.updated": (draft, event) => putTask(draft, event.task),
  "task.ended": (draft, event) => {
    putTask(draft, event.task);
    draft.reports = { ...draft.reports, [event.task.id]: event.text };
    draft.said = `The task ${event.task.description} has ended: ${event.task.state}.`;
  },
};

function putTask(draft: Draft, task: TaskInfo): void {
  const isNew = !draft.tasks.some((one) => one.id === task.id);
  draft.tasks = isNew ? [...draft.tasks, task] : draft.tasks.map((one) => (one.id === task.id ? task : one));
}

function levelOf(word: string): "info" | "warning" | "error" {
  return word === "error" || word === "warning" ? word : "info";
}

function backgroundEnd(
  command: string,
  end: { exitCode: number | null; signal?: number | undefined },
): string {
  const how =
    end.exitCode === null
      ? `was ended by signal ${end.signal ?? "?"}`
      : `ended with exit code ${end.exitCode}`;
  return `The background command ${command} ${how}.`;
}

function lastShell(draft: Draft): number {
  return draft.rows.findLastIndex((row) => row.kind === "shell" && !row.ended);
}

type Level = "info" | "warning" | "error";
type More = { hint?: string | undefined; errorKind?: string | undefined };

function notice(
  draft: Draft,
  event: { seq: number; at: string },
  level: Level,
  text: string,
  more: More = {},
): void {
  draft.rows.push({ key: `notice:${event.seq}`, at: event.at, kind: "notice", level, text, ...more });
  if (level !== "info") draft.said = text;
}

function settleRetries(draft: Draft, run: string, outcome: "worked" | "gaveUp"): void {
  draft.rows = draft.rows.map((row) =>
    row.kind === "retry" && row.run === run && row.outcome === "waiting" ? { ...row, outcome } : row,
  );
}

/** Takes the attempts of a run out of the rows, for the card of its failure; returns what each said, in order. */
function takeAttempts(draft: Draft, run: string): string[] {
  const failed = draft.rows.filter(
    (row) => row.kind === "retry" && row.run === run && row.outcome === "gaveUp",
  );
  draft.rows = draft.rows.filter((row) => !failed.includes(row));
  return failed.flatMap((row) => (row.kind === "retry" ? row.errors : []));
}

function runEnded(draft: Draft, event: RunEnded): void {
  settleRetries(draft, event.run, event.status === "completed" ? "worked" : "gaveUp");
  const attempts = event.status === "failed" ? takeAttempts(draft, event.run) : [];
  draft.rows = draft.rows.map((row) => stilled(row, event.run));
  const { tokens } = event.usage;
  const counts = "unreviewed" in event.changes ? event.changes : undefined;
  draft.run = undefined;
  put(draft, {
    key: `end:${event.run}`,
    run: event.run,
    at: event.at,
    kind: "runEnd",
    status: event.status,
    error: event.error,
    tokens: tokens.in + tokens.out,
    cost: costText(event.cost ?? undefined),
    files: counts?.files ?? 0,
    additions: counts?.additions ?? 0,
    deletions: counts?.deletions ?? 0,
    resumable: event.resumable ?? event.status === "failed",
    durationMs: event.durationMs,
    steps: draft.rows.filter((row) => row.kind === "tool" && row.run === event.run).length,
    attempts,
  });
  draft.said = event.error?.message ?? `Tiller finished: ${event.status}.`;
}

/** Nothing of a run that is over goes on, also if its own end was never told. */
function stilled(row: Row, run: string): Row {
  if (row.run !== run) return row;
  if ((row.kind === "said" || row.kind === "thought") && row.streaming) return { ...row, streaming: false };
  if (row.kind === "tool" && row.phase !== "ended") return { ...row, phase: "ended", status: "cancelled" };
  return row;
}
