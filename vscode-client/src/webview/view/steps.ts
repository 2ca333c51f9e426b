// Steps of a plan or of a list, each with its state.

import { html } from "lit";
import { oneLine } from "../safe-text.js";
import type { TodoStep } from "../todo.js";
import { icon, type View } from "./parts.js";

const STEPS: Readonly<Record<string, string>> = {
  cancelled: "circle-slash",
  done: "pass-filled",
  active: "arrow-circle-right",
  pending: "circle-large-outline",
};

export function stepList(steps: readonly TodoStep[]): View {
  return html`<ol class="steps">
    ${steps.map(
      (step) =>
        html`<li class=${step.status} title=${step.why ?? ""}>${icon(STEPS[step.status] ?? "circle")} ${oneLine(step.text)}<span class="unseen"> (${step.status})</span></li>`,
    )}
  </ol>`;
}
