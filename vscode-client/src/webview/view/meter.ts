// How full the window of the model is, and what was spent.

import { html, nothing } from "lit";
import type { Panel } from "../panel-context.js";
import type { SessionView } from "../state.js";
import { editorOnly } from "../surface.js";
import { compact, go } from "../verbs.js";
import { costText, countText } from "../words.js";
import { icon, styled, type View } from "./parts.js";
import { menuKey } from "./pickers.js";

/** Shares of the window from which the ring warns. */
const FILLING = 0.75;
const FULL = 0.9;

/** A ring that fills with the window of the model; its menu tells the numbers. */
export function meter(panel: Panel, session: SessionView): View {
  const { context, cost } = session.usage;
  const known = context.used !== null && context.size > 0;
  const share = known ? Math.min(1, (context.used ?? 0) / context.size) : 0;
  const percent = known ? `${Math.round(share * 100)} %` : "–";
  const spent = costText(cost);
  const level = share > FULL ? "full" : share > FILLING ? "filling" : "";
  const words = `Context ${percent} full${spent ? `, ${spent} spent` : ""}`;
  const open = panel.state.menu === "meter";
  return html`<span class="picker">
    <button
      type="button"
      class="picker-button meter ${level}"
      title=${words}
      aria-haspopup="menu"
      aria-expanded=${String(open)}
      @click=${() => panel.dispatch({ type: "menu", name: open ? undefined : "meter" })}
    >
      <span class="ring" ${styled({ "--share": String(share) })}></span>
      <span class="meter-words">${[percent, spent].filter(Boolean).join(" · ")}</span>
    </button>
    ${open ? numbers(panel, session) : nothing}
  </span>`;
}

function numbers(panel: Panel, session: SessionView): View {
  const makeRoom = () => {
    panel.dispatch({ type: "menu", name: undefined });
    compact(panel);
  };
  const showCosts = () => {
    panel.dispatch({ type: "menu", name: undefined });
    go(panel, "costs");
  };
  const setLimit = () => {
    panel.dispatch({ type: "menu", name: undefined });
    panel.host.post({ type: "command", command: "tiller.setCostLimit" });
  };
  return html`<div
    class="menu meter-menu"
    role="dialog"
    aria-label="Context and cost"
    @keydown=${(event: KeyboardEvent) => menuKey(panel, event)}
  >
    <dl>${lines(session).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    <button type="button" class="menu-item" @click=${makeRoom}>
      ${icon("fold")} <span class="menu-label">Compact conversation</span>
    </button>
    <button type="button" class="menu-item" @click=${showCosts}>
      ${icon("graph")} <span class="menu-label">Costs by day…</span>
    </button>
    ${editorOnly(
      panel,
      html`<button type="button" class="menu-item" @click=${setLimit}>
        ${icon("credit-card")} <span class="menu-label">Set a cost limit per run…</span>
      </button>`,
    )}
  </div>`;
}

function lines({ usage }: SessionView): [string, string][] {
  const { context, tokens, cost, budget } = usage;
  const window = `${countText(context.used ?? 0)} of ${countText(context.size)}`;
  const spent = costText(cost);
  const thought = tokens.reasoning > 0 ? ` (${countText(tokens.reasoning)} thinking)` : "";
  const all: [string, string][] = [
    ["Context", context.used === null ? "unknown until the next answer" : window],
    ["Input tokens", countText(tokens.in)],
    ["Cached tokens", countText(tokens.cacheRead)],
    ["Output tokens", `${countText(tokens.out)}${thought}`],
  ];
  if (spent) all.push(["Cost", cost?.estimated ? `${spent} (estimated)` : spent]);
  if (budget) all.push(["Budget", `${budget.used} of ${budget.limit}`]);
  return all;
}
