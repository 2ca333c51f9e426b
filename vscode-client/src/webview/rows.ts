// The rows of the transcript: what each holds, and how stored items become rows.

import type {
  Block,
  DocumentOutcome,
  Item,
  JsonValue,
  MessageDelivery,
  RunError,
  RunStatus,
  StopReason,
  ToolStatus,
} from "../shared/wire.js";
import { besideOf } from "./beside.js";

type Arguments = { [key: string]: JsonValue };

interface RowBase {
  /** Unique in the transcript, and the same in every window. */
  key: string;
  /** Id of the run, where it belongs to one. */
  run?: string | undefined;
  at?: string | undefined;
}

/** Words of the user, the model or an extension. */
export interface SaidRow extends RowBase {
  kind: "said";
  role: string;
  text: string;
  /** What came with the words: files, selections, pictures. */
  blocks: readonly Block[];
  streaming: boolean;
  delivery?: MessageDelivery | undefined;
  stopReason?: StopReason | undefined;
  /** Entry of the session file, to fork or go back to. */
  entry?: string | undefined;
  /** Whose words they are, with the role `custom`. */
  customType?: string | undefined;
  /** How the extension that said it wants it to be shown. */
  view?: { [key: string]: JsonValue } | undefined;
}

export interface ThoughtRow extends RowBase {
  kind: "thought";
  text: string;
  streaming: boolean;
}

export interface ToolRow extends RowBase {
  kind: "tool";
  call: string;
  name: string;
  title: string;
  /** The arguments so far, while they stream; long texts are cut. */
  partial: Arguments | undefined;
  input: JsonValue | undefined;
  /** The end of what it printed so far. */
  output: string;
  /** Characters of the output that are not kept. */
  outputCut: number;
  phase: "asked" | "running" | "ended";
  status?: ToolStatus | undefined;
  content: readonly Block[];
  details: JsonValue | undefined;
  durationMs?: number | undefined;
  startedAt?: string | undefined;
}

/** What became of the documents of an edit that the user should look at. */
export interface EditRow extends RowBase {
  kind: "edit";
  what: "proposed" | "conflict" | "rejected" | "undone";
  documents: readonly DocumentOutcome[];
}

export interface SummaryRow extends RowBase {
  kind: "summary";
  text: string;
  tokensBefore?: number | undefined;
  tokensAfter?: number | undefined;
  going: boolean;
  error?: string | undefined;
}

export interface RetryRow extends RowBase {
  kind: "retry";
  attempt: number;
  maxAttempts: number;
  /** Milliseconds since the epoch at which it is tried again. */
  untilMs: number;
  /** What each failed attempt said, in order; at least one. */
  errors: readonly string[];
  outcome: "waiting" | "worked" | "gaveUp";
}

export interface NoticeRow extends RowBase {
  kind: "notice";
  level: "info" | "warning" | "error";
  text: string;
  hint?: string | undefined;
  errorKind?: string | undefined;
}

export interface RunEndRow extends RowBase {
  kind: "runEnd";
  status: RunStatus;
  error?: RunError | undefined;
  tokens: number;
  cost?: string | undefined;
  files: number;
  additions: number;
  deletions: number;
  resumable: boolean;
  /** Another run began since: a failure is one line then. */
  superseded?: boolean | undefined;
  /** From the start of the run to its end; undefined for runs of the past. */
  durationMs?: number | undefined;
  /** Tool calls of the run. */
  steps?: number | undefined;
  /** Attempts to reach the model that failed before the run did. */
  attempts?: readonly string[] | undefined;
}

/** A command that the user ran themselves. */
export interface ShellRow extends RowBase {
  kind: "shell";
  command: string;
  output: string;
  ended: boolean;
  exitCode: number | null;
}

/** The trace of a question that was answered. */
export interface AnsweredRow extends RowBase {
  kind: "answered";
  title: string;
  answer: string;
  /** The permission request; undefined: it was a question. */
  request?: string | undefined;
  allowed: boolean;
  by: string;
}

/** A run of lookups that is shown as one line. It is made for the view, and is not in the session's rows. */
export interface GroupRow extends RowBase {
  kind: "group";
  calls: readonly ToolRow[];
}

export type Row =
  | SaidRow
  | ThoughtRow
  | ToolRow
  | EditRow
  | SummaryRow
  | RetryRow
  | NoticeRow
  | RunEndRow
  | ShellRow
  | AnsweredRow
  | GroupRow;

/** Gives the words of a message, and what came along with them. */
export function partsOf(content: readonly Block[], role: string): { text: string; blocks: Block[] } {
  const words: string[] = [];
  const blocks: Block[] = [];
  for (const block of content) {
    const text = block.type === "text" ? (block as { text: string }).text : undefined;
    const beside = text === undefined ? [block] : role === "user" ? besideOf(text) : undefined;
    if (beside) blocks.push(...beside);
    else words.push(text ?? "");
  }
  return { text: words.join("\n\n"), blocks };
}

/** Gives the words that blocks hold; the output of a tool, for one. */
export function textOf(content: readonly Block[]): string {
  return content.map((block) => (block.type === "text" ? (block as { text: string }).text : "")).join("");
}

/** Makes the rows of stored items. An answer that is empty has none. */
export function rowsOfItems(items: readonly Item[], live: { run?: string }): Row[] {
  return items.flatMap((item) => rowOfItem(item, live.run) ?? []);
}

function rowOfItem(item: Item, run: string | undefined): Row | undefined {
  const base = { key: item.item, run: item.run ?? run, at: item.at };
  const streaming = run !== undefined;
  switch (item.kind) {
    case "message": {
      const { text, blocks } = partsOf(item.content, item.role);
      if (!text && blocks.length === 0 && !streaming) return undefined;
      return {
        ...base,
        kind: "said",
        role: item.role,
        text,
        blocks,
        streaming: streaming && item.role === "assistant" && item.stopReason === undefined,
        delivery: item.delivery,
        stopReason: item.stopReason,
        entry: streaming ? undefined : item.item,
      };
    }
    case "thought":
      return { ...base, kind: "thought", text: item.text, streaming: false };
    case "tool":
      return toolOfItem(item, base);
    case "edit":
      return undefined;
    case "summary":
      return {
        ...base,
        kind: "summary",
        text: item.summary ?? "",
        tokensBefore: item.tokensBefore,
        tokensAfter: item.tokensAfter,
        going: false,
      };
    case "end":
      return endOfItem(item);
  }
}

/** The end of a run that was not completed; it has the key that the run's own event gives it. */
function endOfItem(item: Extract<Item, { kind: "end" }>): RunEndRow {
  const nothing = { tokens: 0, files: 0, additions: 0, deletions: 0 };
  const { run, at, status, resumable } = item;
  return { key: `end:${run ?? item.item}`, run, at, kind: "runEnd", status, resumable, ...nothing };
}

function toolOfItem(item: Extract<Item, { kind: "tool" }>, base: RowBase): ToolRow {
  const ended = item.status !== undefined;
  return {
    ...base,
    kind: "tool",
    call: item.call,
    name: item.name,
    title: item.title ?? titleOf(item.name, item.input),
    partial: undefined,
    input: item.input,
    output: ended ? "" : textOf(item.content ?? []),
    outputCut: 0,
    phase: ended ? "ended" : item.input === undefined ? "asked" : "running",
    status: item.status,
    content: ended ? (item.content ?? []) : [],
    details: item.details,
    durationMs: item.durationMs,
  };
}

/** Says what a call is about in one line, for calls that carry no title of their own. */
export function titleOf(name: string, input: JsonValue | undefined): string {
  if (input === undefined || input === null || typeof input !== "object" || Array.isArray(input)) return name;
  const command = input["command"];
  if (name === "bash" && typeof command === "string") return `$ ${command}`;
  const about = input["path"] ?? input["pattern"] ?? input["url"] ?? input["query"];
  return typeof about === "string" ? `${name} ${about}` : name;
}
