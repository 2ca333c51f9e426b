// What the status bar says. Pure.

import type { HostState } from "../../shared/messages.js";
import type { RunEnd } from "../agent/others.js";
import type { Overview } from "../agent/overview.js";

export interface StatusText {
  text: string;
  tooltip: string;
  /** For screen readers: no icons. */
  label: string;
  colour: "plain" | "warning" | "error";
}

const STATES: Record<string, { icon: string; words: string }> = {
  idle: { icon: "$(sparkle)", words: "ready" },
  running: { icon: "$(sync~spin)", words: "working" },
  requiresAction: { icon: "$(bell-dot)", words: "needs your answer" },
  compacting: { icon: "$(fold)", words: "compacting the conversation" },
  retrying: { icon: "$(history)", words: "trying again" },
  error: { icon: "$(error)", words: "stopped by an error" },
};
const ASKING = "$(bell-dot)";
const STARTING = { icon: "$(loading~spin)", words: "starting" };

export function statusText(
  host: HostState,
  overview: Overview | undefined,
  others: readonly Overview[] = [],
): StatusText {
  if (host.problem !== undefined) return problemText(host.problem);
  if (!host.ready || overview === undefined) {
    const words = host.doing ?? STARTING.words;
    return { text: `${STARTING.icon} Tiller`, tooltip: words, label: `Tiller: ${words}`, colour: "plain" };
  }
  const state = STATES[overview.state] ?? { icon: "$(sparkle)", words: overview.state };
  const parts = figures(overview);
  const waiting = others.filter((one) => one.pending.length > 0);
  const asks = overview.state === "requiresAction" || waiting.length > 0;
  const words = waiting.length > 0 ? `${state.words}, and another session needs your answer` : state.words;
  return {
    text: [`${asks ? ASKING : state.icon} ${asks ? "Tiller asks" : "Tiller"}`, ...parts].join(" · "),
    tooltip: [details(overview, state.words), ...others.map(besideWords)].join("\n"),
    label: [`Tiller ${words}`, ...parts].join(", "),
    colour: asks ? "warning" : overview.state === "error" ? "error" : "plain",
  };
}

/** A window without a folder is no fault: it has nothing to work on yet. */
function problemText({ text, action }: NonNullable<HostState["problem"]>): StatusText {
  const isEmpty = action?.command === "tiller.openFolder";
  return {
    text: isEmpty ? "$(folder) Tiller" : "$(error) Tiller",
    tooltip: text,
    label: `Tiller: ${text}`,
    colour: isEmpty ? "plain" : "error",
  };
}

/** What a session that is not in front does, for the tooltip. */
function besideWords(other: Overview): string {
  const state = STATES[other.pending.length > 0 ? "requiresAction" : other.state]?.words ?? other.state;
  const waiting = other.unreviewed === 0 ? "" : `, ${countedChanges(other.unreviewed)} to review`;
  return `Also open: ${other.title ?? "a session without a title"} (${state}${waiting})`;
}

/** What is shown when a run ends that the panel does not show. */
export function endText(
  overview: Overview,
  end: RunEnd["event"],
  { isFront }: { isFront: boolean },
): { text: string; failed: boolean } {
  const untitled = isFront ? "" : " in another session";
  const where = overview.title === undefined ? untitled : ` in “${noticeLine(overview.title)}”`;
  if (end.status === "completed") return { text: `Tiller finished${where}.`, failed: false };
  if (end.status === "cancelled") return { text: `Tiller was stopped${where}.`, failed: false };
  const why = end.error === undefined ? "" : `: ${noticeLine(end.error.message)}`;
  return { text: `Tiller stopped${where}${why}`, failed: true };
}

const NOTICE_CHARS = 160;

/** One line, without what could pass for a line or a link of the editor's own. */
export function noticeLine(text: string): string {
  const plain = text
    .replaceAll(/[\p{Cc}\p{Cf}]+/gu, " ")
    .replaceAll(/[[\]()]/g, " ")
    .trim();
  if (plain.length <= NOTICE_CHARS) return plain;
  const cut = plain.slice(0, NOTICE_CHARS);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), NOTICE_CHARS / 2))}…`;
}

function countedChanges(count: number): string {
  return `${count} change${count === 1 ? "" : "s"}`;
}

function figures(overview: Overview): string[] {
  const percent = percentOf(overview);
  return [
    overview.model === null ? "no model" : shortModel(overview.model),
    ...(percent === undefined ? [] : [`${percent} %`]),
    ...(overview.cost === undefined ? [] : [money(overview.cost)]),
  ];
}

function details(overview: Overview, state: string): string {
  const { context, unreviewed } = overview;
  const used = context.used === null ? "not known yet" : context.used.toLocaleString("en-US");
  return [
    overview.title ?? "New session",
    `State: ${state}`,
    overview.model === null
      ? "Model: none. Choose one in the panel."
      : `Model: ${overview.model}, thinking ${overview.thinking}`,
    `Permissions: ${overview.mode}`,
    ...(context.size > 0 ? [`Context: ${used} of ${context.size.toLocaleString("en-US")} tokens`] : []),
    ...(overview.cost === undefined
      ? []
      : [`Cost: ${money(overview.cost)}${overview.cost.estimated ? " (estimated)" : ""}`]),
    ...(unreviewed === 0 ? [] : [`${countedChanges(unreviewed)} to review`]),
  ].join("\n");
}

function percentOf({ context }: Overview): number | undefined {
  if (context.used === null || context.size <= 0) return undefined;
  return Math.round((100 * context.used) / context.size);
}

export function shortModel(model: string): string {
  return model.slice(model.indexOf("/") + 1);
}

export function money(cost: { amount: number; currency: string }): string {
  const digits = cost.amount !== 0 && cost.amount < 0.1 ? 3 : 2;
  const amount = cost.amount.toFixed(digits);
  return cost.currency === "USD" ? `$${amount}` : `${amount} ${cost.currency}`;
}
