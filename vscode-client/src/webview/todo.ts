// The list of steps that the model keeps with the tool `todo`. Pure.

import type { JsonValue } from "../shared/wire.js";
import type { Row } from "./rows.js";

export interface TodoStep {
  text: string;
  status: string;
  why?: string;
}

const OPEN: ReadonlySet<string> = new Set(["pending", "active"]);
/** The rows of a session are a new list whenever one of them changes. */
const known = new WeakMap<readonly Row[], readonly TodoStep[]>();

/** Gives the newest list, as long as something of it is open. */
export function openTodo(rows: readonly Row[]): readonly TodoStep[] {
  const before = known.get(rows);
  if (before) return before;
  const newest = rows.findLast((row) => row.kind === "tool" && row.name === "todo" && row.status === "ok");
  const steps = newest?.kind === "tool" ? todoSteps(newest.details) : [];
  const open = steps.some((step) => OPEN.has(step.status)) ? steps : [];
  known.set(rows, open);
  return open;
}

/** Gives the steps that the details of a call hold. */
export function todoSteps(details: JsonValue | undefined): TodoStep[] {
  if (details === null || typeof details !== "object" || Array.isArray(details)) return [];
  const listed = details["todo"];
  return Array.isArray(listed) ? listed.flatMap(step) : [];
}

function step(value: JsonValue): TodoStep[] {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return [];
  const { text, status, why } = value;
  if (typeof text !== "string" || typeof status !== "string") return [];
  return [{ text, status, ...(typeof why === "string" ? { why } : {}) }];
}
