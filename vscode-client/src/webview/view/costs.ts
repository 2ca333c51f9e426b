// What model calls cost, by day: a bar for each of the latest days, and the sum of all.

import { html, nothing } from "lit";
import type { CostSums } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import { costText, countText } from "../words.js";
import { placeHead } from "./header.js";
import { spinner, styled, type View } from "./parts.js";

/** Days of the chart. */
const DAYS = 30;

export function costs(panel: Panel): View {
  const report = panel.state.lists.costs;
  const days = (report?.sums ?? []).slice(-DAYS).reverse();
  const most = Math.max(...days.map((one) => Number(one.usd)), 0);
  return html`${placeHead(panel, "Costs")}
    <div class="place-list">
      ${report ? nothing : html`<div class="pad">${spinner()}</div>`}
      ${report?.total.calls === 0 ? html`<div class="empty dim">No model calls yet.</div>` : nothing}
      ${report?.problems.map((one) => html`<div class="pad warning" role="status">${oneLine(one)}</div>`)}
      ${report && report.total.calls > 0 ? html`<div class="cost-total pad">${spent(report.total)} in all</div>` : nothing}
      <div role="list">${days.map((one) => day(one, most))}</div>
      ${report && report.total.unknown > 0 ? html`<div class="pad dim">${unknown(report.total)}</div>` : nothing}
    </div>`;
}

function day(one: CostSums, most: number): View {
  const share = most > 0 ? Number(one.usd) / most : 0;
  const tokens = `${countText(one.input + one.cacheRead + one.cacheWrite)} in, ${countText(one.output)} out`;
  return html`<div class="cost-day" role="listitem">
    <span>${oneLine(one.key)}</span>
    <span class="cost-bar" aria-hidden="true" ${styled({ "--share": String(share) })}></span>
    <span class="cost-sum" title="${one.calls} calls, ${tokens}">${spent(one)}</span>
  </div>`;
}

/** Says a sum; one with calls of unknown cost is a lower bound. */
function spent(one: CostSums): string {
  return `${one.unknown > 0 ? "≥ " : ""}${dollars(one.usd)}`;
}

function dollars(usd: string): string {
  return costText({ amount: Number(usd), currency: "USD", estimated: false }) ?? "$0";
}

function unknown(total: CostSums): string {
  const calls = `${total.unknown} ${total.unknown === 1 ? "call has" : "calls have"} an unknown cost`;
  const isBounded = Number(total.atMostUsd) > 0;
  return isBounded
    ? `${calls}; those without a known end cost at most ${dollars(total.atMostUsd)}.`
    : `${calls}.`;
}
