// What the status bar says. Pure.

import type { HostState } from "../../shared/messages.js";
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
  requiresAction: { icon: "$(bell-dot)", words: "waits for your answer" },
  compacting: { icon: "$(fold)", words: "summing up the conversation" },
  retrying: { icon: "$(history)", words: "trying again" },
  error: { icon: "$(error)", words: "stopped by an error" },
};
const STARTING = { icon: "$(loading~spin)", words: "starting" };

export function statusText(host: HostState, overview: Overview | undefined): StatusText {
  if (host.problem !== undefined) {
    const { text } = host.problem;
    return { text: "$(error) Tiller", tooltip: text, label: `Tiller: ${text}`, colour: "error" };
  }
  if (!host.ready || overview === undefined) {
    const words = host.doing ?? STARTING.words;
    return { text: `${STARTING.icon} Tiller`, tooltip: words, label: `Tiller: ${words}`, colour: "plain" };
  }
  const state = STATES[overview.state] ?? { icon: "$(sparkle)", words: overview.state };
  const parts = figures(overview);
  const asks = overview.state === "requiresAction";
  return {
    text: [`${state.icon} ${asks ? "Tiller asks" : "Tiller"}`, ...parts].join(" · "),
    tooltip: details(overview, state.words),
    label: [`Tiller ${state.words}`, ...parts].join(", "),
    colour: asks ? "warning" : overview.state === "error" ? "error" : "plain",
  };
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
    `Model: ${overview.model ?? "none; sign in to a provider first"}, thinking ${overview.thinking}`,
    `Permissions: ${overview.mode}`,
    `Context: ${used} of ${context.size.toLocaleString("en-US")} tokens`,
    ...(overview.cost === undefined
      ? []
      : [`Cost: ${money(overview.cost)}${overview.cost.estimated ? " (estimated)" : ""}`]),
    ...(unreviewed === 0 ? [] : [`${unreviewed} change${unreviewed === 1 ? "" : "s"} to review`]),
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
