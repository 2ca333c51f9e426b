// Takes the events of messages, thoughts, tools and edits into the rows of a session.

import type {
  EditApplied,
  EditConflict,
  EditProposed,
  EditRejected,
  EditUndone,
  MessageDelta,
  MessageEnded,
  MessageStarted,
  ThoughtDelta,
  ThoughtEnded,
  ThoughtStarted,
  ToolEnded,
  ToolInputDelta,
  ToolOutputDelta,
  ToolRunning,
  ToolStarted,
} from "../shared/wire.js";
import { partsOf, type Row, type SaidRow, type ThoughtRow, type ToolRow, titleOf } from "./rows.js";
import type { SessionView } from "./state.js";

/** A session that is being brought up to date; its rows are a copy of their own. */
export type Draft = Omit<SessionView, "rows"> & { rows: Row[] };

/** Characters of a running tool's output that are kept; what is older is told by its number. */
export const OUTPUT_KEPT = 200_000;

/** Finds a row from the end, where nearly everything happens. */
export function placeOf(draft: Draft, key: string): number {
  for (let at = draft.rows.length - 1; at >= 0; at--) {
    if (draft.rows[at]?.key === key) return at;
  }
  return -1;
}

/** Puts a row in the place of the one with its key, or at the end. */
export function put(draft: Draft, row: Row): void {
  const at = placeOf(draft, row.key);
  if (at < 0) draft.rows.push(row);
  else draft.rows[at] = row;
}

function row<K extends Row["kind"]>(
  draft: Draft,
  key: string,
  kind: K,
): Extract<Row, { kind: K }> | undefined {
  const found = draft.rows[placeOf(draft, key)];
  return found?.kind === kind ? (found as Extract<Row, { kind: K }>) : undefined;
}

export function messageStarted(draft: Draft, event: MessageStarted): void {
  put(draft, said(event));
}

export function messageDelta(draft: Draft, event: MessageDelta): void {
  const at = placeOf(draft, event.item);
  const found = draft.rows[at];
  const before = found?.kind === "said" ? found : said({ ...event, role: "assistant" });
  const after = { ...before, text: before.text + event.text };
  if (before.text === "") thoughtsOver(draft, event.run);
  if (before.text === "" && at >= 0 && at < draft.rows.length - 1) {
    // The message was announced before the model thought; its words come after the thought.
    draft.rows.splice(at, 1);
    draft.rows.push(after);
    return;
  }
  if (at < 0) draft.rows.push(after);
  else draft.rows[at] = after;
}

export function messageEnded(draft: Draft, event: MessageEnded): void {
  const { text, blocks } = partsOf(event.content, event.role);
  const at = placeOf(draft, event.item);
  if (!text && blocks.length === 0) {
    if (at >= 0) draft.rows.splice(at, 1);
    return;
  }
  const before = row(draft, event.item, "said") ?? said(event);
  put(draft, {
    ...before,
    role: event.role,
    text,
    blocks,
    streaming: false,
    delivery: event.delivery,
    stopReason: event.stopReason,
    entry: event.entry,
    ...(event.customType !== undefined && { customType: event.customType }),
  });
  if (event.role === "assistant") draft.said = text;
}

function said(event: { item: string; role: string; run?: string | undefined; at: string }): SaidRow {
  return {
    key: event.item,
    run: event.run,
    at: event.at,
    kind: "said",
    role: event.role,
    text: "",
    blocks: [],
    streaming: event.role === "assistant",
  };
}

export function thoughtStarted(
  draft: Draft,
  event: ThoughtStarted | ThoughtDelta | ThoughtEnded,
): ThoughtRow {
  const made: ThoughtRow = {
    key: event.item,
    run: event.run,
    at: event.at,
    kind: "thought",
    text: "",
    streaming: true,
  };
  const known = row(draft, event.item, "thought");
  if (!known) draft.rows.push(made);
  return known ?? made;
}

export function thoughtDelta(draft: Draft, event: ThoughtDelta): void {
  const before = thoughtStarted(draft, event);
  put(draft, { ...before, text: before.text + event.text, streaming: true });
}

export function thoughtEnded(draft: Draft, event: ThoughtEnded): void {
  put(draft, { ...thoughtStarted(draft, event), text: event.text, streaming: false });
}

/** What follows a thought shows that it is over; `thought.ended` comes when the whole answer is stored. */
function thoughtsOver(draft: Draft, run: string | undefined): void {
  draft.rows.forEach((one, at) => {
    if (one.kind === "thought" && one.streaming && one.run === run)
      draft.rows[at] = { ...one, streaming: false };
  });
}

type ToolEvent = ToolStarted | ToolInputDelta | ToolRunning | ToolOutputDelta | ToolEnded;

function tool(draft: Draft, event: ToolEvent): ToolRow {
  const known = row(draft, event.item, "tool");
  if (known) return known;
  thoughtsOver(draft, event.run);
  const name = "name" in event ? event.name : "tool";
  return {
    key: event.item,
    run: event.run,
    at: event.at,
    kind: "tool",
    call: "call" in event ? event.call : event.item,
    name,
    title: name,
    partial: undefined,
    input: undefined,
    output: "",
    outputCut: 0,
    phase: "asked",
    content: [],
    details: undefined,
  };
}

export function toolStarted(draft: Draft, event: ToolStarted): void {
  put(draft, {
    ...tool(draft, event),
    name: event.name,
    title: event.title,
    call: event.call,
    input: event.input,
  });
}

export function toolInput(draft: Draft, event: ToolInputDelta): void {
  const before = tool(draft, event);
  const { partial = before.partial } = event;
  put(draft, { ...before, partial, title: partial ? titleOf(before.name, partial) : before.title });
}

export function toolRunning(draft: Draft, event: ToolRunning): void {
  const before = tool(draft, event);
  const title = event.title ?? before.title;
  put(draft, {
    ...before,
    title,
    input: event.input,
    details: event.details,
    partial: undefined,
    phase: "running",
    startedAt: event.at,
  });
  draft.said = title;
}

export function toolOutput(draft: Draft, event: ToolOutputDelta): void {
  const before = tool(draft, event);
  const whole = before.output + event.text;
  // Twice the room before it is cut, so that not each small piece copies all that is kept.
  const cut = whole.length > 2 * OUTPUT_KEPT ? whole.length - OUTPUT_KEPT : 0;
  put(draft, {
    ...before,
    phase: "running",
    output: cut > 0 ? whole.slice(cut) : whole,
    outputCut: before.outputCut + cut + (event.elided ?? 0),
  });
}

export function toolEnded(draft: Draft, event: ToolEnded): void {
  const before = tool(draft, event);
  put(draft, {
    ...before,
    name: event.name,
    call: event.call,
    phase: "ended",
    status: event.status,
    content: event.content,
    details: event.details,
    durationMs: event.durationMs,
    output: "",
    input: before.input ?? before.partial,
    partial: undefined,
  });
}

type LookedAt = EditProposed | EditConflict | EditRejected | EditUndone;
const LOOKED_AT = {
  "edit.proposed": "proposed",
  "edit.conflict": "conflict",
  "edit.rejected": "rejected",
  "edit.undone": "undone",
} as const;

export function editToldOf(draft: Draft, event: LookedAt): void {
  const what = LOOKED_AT[event.type];
  const key = `${event.edit}:${what}`;
  const before = row(draft, key, "edit");
  const documents = [...(before?.documents ?? []), ...event.documents];
  put(draft, { key, run: event.run, at: event.at, kind: "edit", what, documents });
}

export function editApplied(draft: Draft, event: EditApplied): void {
  // Done again after an undo: the trace of the undo would be a lie now.
  const at = placeOf(draft, `${event.edit}:undone`);
  if (at >= 0) draft.rows.splice(at, 1);
}
