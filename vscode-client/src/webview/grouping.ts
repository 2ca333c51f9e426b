// Runs of finished lookups in the transcript as one row each: "Read 12 files, searched 4 times". Pure.

import type { GroupRow, Row, ToolRow } from "./rows.js";
import { plural } from "./words.js";

/** A run of fewer lookups is shown call by call. */
const LEAST = 3;
const LOOKUPS: ReadonlySet<string> = new Set(["read", "grep", "find", "ls", "diagnostics"]);

/** Gives the rows with each run of lookups that succeeded folded into one; an open group is followed by its calls. */
export function grouped(rows: readonly Row[], isOpen: (key: string) => boolean): readonly Row[] {
  if (!rows.some(isLookup)) return rows;
  const shown: Row[] = [];
  let calls: ToolRow[] = [];
  const close = () => {
    if (calls.length < LEAST) shown.push(...calls);
    else {
      const group = groupOf(calls);
      shown.push(group, ...(isOpen(group.key) ? calls : []));
    }
    calls = [];
  };
  for (const row of rows) {
    if (isLookup(row) && (calls.length === 0 || calls[0]?.run === row.run)) calls.push(row);
    else {
      close();
      if (isLookup(row)) calls.push(row);
      else shown.push(row);
    }
  }
  close();
  return shown;
}

function isLookup(row: Row): row is ToolRow {
  return row.kind === "tool" && row.phase === "ended" && row.status === "ok" && LOOKUPS.has(row.name);
}

function groupOf(calls: readonly ToolRow[]): GroupRow {
  const first = calls[0];
  return { key: `group:${first?.key}`, run: first?.run, at: first?.at, kind: "group", calls };
}

/** Says what a group did. */
export function groupText(calls: readonly ToolRow[]): string {
  const read = new Set(calls.filter((one) => one.name === "read").map((one) => pathOf(one) ?? one.key));
  const count = (...names: string[]) => calls.filter((one) => names.includes(one.name)).length;
  const parts = [
    read.size > 0 ? `read ${plural(read.size, "file")}` : "",
    count("grep", "find") > 0 ? `searched ${plural(count("grep", "find"), "time")}` : "",
    count("ls") > 0 ? `listed ${plural(count("ls"), "folder")}` : "",
    count("diagnostics") > 0 ? "checked for problems" : "",
  ].filter(Boolean);
  const text = parts.join(", ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Gives the path that a call names; undefined when it names none. */
export function pathOf({ input }: ToolRow): string | undefined {
  if (input === null || input === undefined || typeof input !== "object" || Array.isArray(input))
    return undefined;
  return typeof input["path"] === "string" && input["path"] ? input["path"] : undefined;
}
