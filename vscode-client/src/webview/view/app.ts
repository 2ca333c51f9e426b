// The panel as a whole.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { Panel } from "../panel-context.js";
import { errorLine } from "../safe-text.js";
import { isWeb } from "../surface.js";
import { changes } from "./changes.js";
import { checkpoints } from "./checkpoints.js";
import { composer } from "./composer.js";
import { costs } from "./costs.js";
import { dock } from "./dock.js";
import { topBar } from "./header.js";
import { models } from "./models.js";
import { icon, iconButton, type View } from "./parts.js";
import { review } from "./review.js";
import { rules } from "./rules.js";
import { sessions } from "./sessions.js";
import { taskChanges } from "./task-changes.js";
import { taskPage } from "./task-page.js";
import type { Timeline } from "./timeline.js";
import { tree } from "./tree.js";
import { webPlace } from "./web-place.js";
import { absent } from "./welcome.js";

export interface Timelines {
  /** Of the session that is shown. */
  timeline: Timeline;
  /** Of the session of the open task. */
  taskTimeline: Timeline;
}

export function app(panel: Panel, { timeline, taskTimeline }: Timelines): View {
  const { state } = panel;
  const { session, host } = state;
  if (!session && !(host.ready && state.greeted))
    return html`<main class="app">${absent(panel)} ${live(panel)}</main>`;
  return html`<main class="app">
    ${isWeb(panel) ? topBar(panel) : nothing} ${restricted(panel)} ${host.problem ? trouble(panel) : nothing}
    ${
      state.place === "task"
        ? taskPage(panel, taskTimeline, toasts(panel))
        : html`${state.place === "transcript" ? timeline.view(panel) : html`<div class="place">${place(panel)}</div>`}
          <div class="bottom">${toasts(panel)} ${session ? dock(panel, session) : nothing} ${composer(panel)}</div>`
    }
    ${live(panel)}
  </main>`;
}

function place(panel: Panel): View {
  switch (panel.state.place) {
    case "sessions":
      return sessions(panel);
    case "tree":
      return tree(panel);
    case "checkpoints":
      return checkpoints(panel);
    case "models":
    case "auth":
      return models(panel);
    case "changes":
      return changes(panel);
    case "review":
      return review(panel);
    case "costs":
      return costs(panel);
    case "rules":
      return rules(panel);
    case "taskChanges":
      return taskChanges(panel);
    case "shares":
    case "scriptTasks":
      return webPlace(panel, panel.state.place);
    case "task":
    case "transcript":
      return nothing;
  }
}

function restricted(panel: Panel): View {
  if (panel.state.trusted) return nothing;
  return html`<div class="banner" role="note">
    ${icon("workspace-untrusted")}
    <span class="grow">Restricted Mode: read-only until you trust this workspace.</span>
    <button type="button" class="secondary" @click=${() => panel.host.post({ type: "trust" })}>Trust</button>
  </div>`;
}

/** The server went away under a session that is still shown. */
function trouble(panel: Panel): View {
  const problem = panel.state.host.problem;
  if (!problem) return nothing;
  const { action } = problem;
  return html`<div class="banner bad" role="alert">
    ${icon("debug-disconnect")} <span class="grow">${problem.text}</span>
    ${action ? html`<button type="button" class="secondary" @click=${() => panel.host.post({ type: "command", command: action.command })}>${action.title}</button>` : nothing}
  </div>`;
}

const LEVELS = { info: "info", warning: "warning", error: "error" } as const;

function toasts(panel: Panel): View {
  if (panel.state.toasts.length === 0) return nothing;
  return html`<div class="toasts" role="status">
    ${repeat(
      panel.state.toasts,
      (one) => one.id,
      (one) =>
        html`<div class="toast ${one.level}">
          ${icon(LEVELS[one.level])} <span class="grow">${errorLine(one.text)}</span>
          ${iconButton({ icon: "close", title: "Dismiss", act: () => panel.dispatch({ type: "untoast", id: one.id }) })}
        </div>`,
    )}
  </div>`;
}

/** Says to screen readers what changed, in whole sentences and not word by word. */
function live(panel: Panel): View {
  const words = panel.state.session?.said ?? panel.state.host.problem?.text ?? panel.state.host.doing ?? "";
  return html`<div class="unseen" role="status" aria-live="polite">${words.slice(0, 2000)}</div>`;
}
