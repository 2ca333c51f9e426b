// The plan that waits for the user's answer. Pure.

import type { Row, ToolRow } from "./rows.js";

export interface Plan {
  markdown: string;
  sha256: string;
}

/** Gives the plan that a call has shown. */
export function planOf(row: ToolRow): Plan | undefined {
  const { details } = row;
  if (row.name !== "plan" || row.status !== "ok") return undefined;
  if (details === null || typeof details !== "object" || Array.isArray(details)) return undefined;
  const plan = details["plan"];
  if (plan === null || plan === undefined || typeof plan !== "object" || Array.isArray(plan))
    return undefined;
  const { markdown, sha256 } = plan;
  return typeof markdown === "string" && typeof sha256 === "string" ? { markdown, sha256 } : undefined;
}

/** Says whether a call's plan waits for an answer: nobody has said anything since. */
export function waits(rows: readonly Row[], call: ToolRow): boolean {
  const at = rows.findIndex((row) => row.key === call.key);
  const answered = (row: Row) =>
    (row.kind === "said" && row.role !== "assistant") || (row.kind === "tool" && planOf(row) !== undefined);
  return at >= 0 && !rows.slice(at + 1).some(answered);
}
