// Tasks that the session gave to other agents: which call gave which, and what is said of them. Pure.

import type { TaskMessage } from "../shared/messages.js";
import type { FileChange, JsonValue, TaskInfo } from "../shared/wire.js";
import { sessionOf } from "./reduce-session.js";
import { rowsOfItems, type ToolRow } from "./rows.js";
import type { MergedParts, PanelState, SessionView, TaskReview, WorktreeOutcome } from "./state.js";
import { costText, countText, durationText, elapsedText, plural } from "./words.js";

/** A task as far as it is known: the call of one that ended long ago keeps less. */
export type KnownTask = Pick<TaskInfo, "id" | "session" | "description" | "preset" | "state" | "background"> &
  Partial<TaskInfo>;

const UNENDED: ReadonlySet<string> = new Set(["queued", "running"]);
const CONTINUED: ReadonlySet<string> = new Set(["lost", "failed", "cancelled", "budget"]);
export function isUnended({ state }: KnownTask): boolean {
  return UNENDED.has(state);
}

/** Says whether the user can continue a task. */
export function canContinue({ state }: KnownTask): boolean {
  return CONTINUED.has(state);
}

/** Gives the task that a call started; undefined: none yet. */
export function taskOf(row: ToolRow, tasks: readonly TaskInfo[]): KnownTask | undefined {
  const kept = taskOfDetails(row.details);
  const known = tasks.findLast((one) =>
    kept === undefined ? one.item === row.call || one.item === row.key : one.id === kept.id,
  );
  return known ?? kept;
}

function taskOfDetails(details: JsonValue | undefined): KnownTask | undefined {
  const kept = fieldsOf(fieldsOf(details)["task"]);
  const text = (name: string) => (typeof kept[name] === "string" ? kept[name] : "");
  const number = (name: string) => (typeof kept[name] === "number" ? kept[name] : 0);
  if (!text("id") || !text("session")) return undefined;
  return {
    id: text("id"),
    session: text("session"),
    description: text("description"),
    preset: text("preset"),
    state: text("state") as TaskInfo["state"],
    background: kept["background"] === true,
    turns: number("turns"),
    toolCalls: number("tool_calls"),
    ...(text("worktree") && { worktree: text("worktree") }),
  };
}

function fieldsOf(value: JsonValue | undefined): { [key: string]: JsonValue } {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}

/** Gives the task with that id. */
export function taskNamed(session: SessionView | undefined, id: string): KnownTask | undefined {
  const known = session?.tasks.find((one) => one.id === id);
  if (known) return known;
  const row = session?.rows.findLast((one) => one.kind === "tool" && taskOfDetails(one.details)?.id === id);
  return row?.kind === "tool" ? taskOfDetails(row.details) : undefined;
}

/** Gives the report of a task: that of its call, else how the one that came by itself begins. */
export function reportOf(row: ToolRow, task: KnownTask, reports: SessionView["reports"]): string {
  const { report } = fieldsOf(row.details);
  return typeof report === "string" ? report : (reports[task.id] ?? "").trim();
}

/** Says what a task has used, in one line. */
export function spentText(task: KnownTask, nowMs: number): string {
  const { turns = 0, toolCalls = 0, tokens = 0, usd, startedMs, durationMs = 0 } = task;
  const runs = task.state === "running" && startedMs !== undefined && nowMs > startedMs;
  return [
    turns > 0 ? plural(turns, "answer") : "",
    toolCalls > 0 ? plural(toolCalls, "tool call") : "",
    tokens > 0 ? `${countText(tokens)} tokens` : "",
    (usd !== undefined && costText({ amount: usd, currency: "USD", estimated: false })) || "",
    runs ? elapsedText(startedMs, nowMs) : durationMs >= 1000 ? durationText(durationMs) : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Says what the extension has to follow for the task that is open; undefined: nothing. */
export function followedTask(state: PanelState): { session: string; isRunning: boolean } | undefined {
  const { task, session } = state;
  if (!task || !session) return undefined;
  const known = taskNamed(session, task.id);
  // The session of one that waits is not there yet.
  return known?.state === "queued"
    ? undefined
    : { session: task.session, isRunning: known?.state === "running" };
}

/** Gives the session of an open task; what is not told for it is that of the session which gave it. */
export function taskView(
  giver: SessionView,
  message: TaskMessage,
  before: SessionView | undefined,
): SessionView {
  const { session, live, items, prev } = message;
  const page = { items, ...(prev === undefined ? {} : { prev }) };
  if (live) return sessionOf({ type: "snapshot", session, ...live, ...page }, before);
  return {
    ...giver,
    session,
    epoch: "",
    seq: 0,
    state: "idle",
    title: undefined,
    run: undefined,
    rows: rowsOfItems(items, {}),
    older: prev,
    queue: [],
    pending: [],
    plan: [],
    background: [],
    tasks: [],
    reports: {},
    activity: {},
    views: {},
    said: "",
  };
}

/** What of the changes of a task is chosen to be merged: whole files by URI, and hunks of others by id. */
export interface Chosen {
  files: string[];
  hunks: string[];
  /** The names of both. */
  parts: string[];
  /** Whether it is everything that the task changed. */
  isAll: boolean;
  /** How many could be chosen. */
  total: number;
}

/** Gives the names by which the parts of a file are chosen: its hunks, or for a file without any its URI. */
export function partsOfFile({ uri, hunks }: FileChange): string[] {
  return hunks.length > 0 ? hunks.map(({ id }) => id) : [uri];
}

/** Gives what was merged of a task already. */
export function mergedParts(outcome: WorktreeOutcome | undefined): MergedParts {
  switch (outcome?.what) {
    case "merged":
    case "undone":
      return outcome.parts;
    case "asked":
      return mergedParts(outcome.before);
    default:
      return new Set();
  }
}

export function isMerged(merged: MergedParts, part: string): boolean {
  return merged === "all" || merged.has(part);
}

/** Gives what is chosen of what is not merged yet. */
export function chosenOf({ changeSet, left }: TaskReview, merged: MergedParts): Chosen {
  const chosen: Chosen = { files: [], hunks: [], parts: [], isAll: true, total: 0 };
  for (const file of changeSet?.files ?? []) {
    const all = partsOfFile(file);
    const rest = all.filter((one) => !isMerged(merged, one));
    const kept = rest.filter((one) => !left.has(one));
    chosen.parts.push(...kept);
    chosen.total += rest.length;
    if (kept.length < all.length) {
      chosen.isAll = false;
      chosen.hunks.push(...kept);
    } else chosen.files.push(file.uri);
  }
  return chosen;
}
