// The field above the transcript in which its words are searched.

import { html } from "lit";
import type { Panel } from "../panel-context.js";
import { iconButton, type View } from "./parts.js";

export const FIND_FIELD = "find-text";

export interface FindBar {
  query: string;
  /** Which match is shown, from 0, and how many there are. */
  at: number;
  count: number;
  /** Whether earlier messages are not loaded, and so not searched. */
  partial: boolean;
}

export function findBar(panel: Panel, bar: FindBar): View {
  const set = (query: string, at: number) => panel.dispatch({ type: "find", find: { query, at } });
  const close = () => panel.dispatch({ type: "find", find: undefined });
  const step = (by: 1 | -1) => {
    if (bar.count > 0) set(bar.query, (bar.at + by + bar.count) % bar.count);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="find-bar" role="search">
    <input
      id=${FIND_FIELD}
      type="search"
      class="grow"
      placeholder="Find in conversation"
      aria-label="Find in conversation"
      .value=${bar.query}
      @input=${(event: Event) => set((event.currentTarget as HTMLInputElement).value, 0)}
      @keydown=${key}
    />
    <span class="dim find-count" role="status">${countText(bar)}</span>
    ${iconButton({ icon: "arrow-up", title: "Previous match (Shift+Enter)", act: () => step(-1), disabled: bar.count === 0 })}
    ${iconButton({ icon: "arrow-down", title: "Next match (Enter)", act: () => step(1), disabled: bar.count === 0 })}
    ${iconButton({ icon: "close", title: "Close (Escape)", act: close })}
  </div>`;
}

function countText({ query, at, count, partial }: FindBar): string {
  if (query === "") return "";
  const earlier = partial ? " (earlier messages are not loaded)" : "";
  return count === 0 ? `No results${earlier}` : `${at + 1} of ${count}${earlier}`;
}
