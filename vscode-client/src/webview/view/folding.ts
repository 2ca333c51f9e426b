// The button below something long that shows all of it, or less again.

import { html } from "lit";
import type { Panel } from "../panel-context.js";
import { icon, type View } from "./parts.js";
import { fold } from "./row-context.js";

export function moreButton(panel: Panel, key: string, { open, all }: { open: boolean; all: string }): View {
  const toggle = () => fold(panel, key, !open);
  return html`<button type="button" class="more" aria-expanded=${String(open)} @click=${toggle}>
    ${icon(open ? "chevron-up" : "chevron-down")} ${open ? "Show less" : `Show all ${all}`}
  </button>`;
}
