// The session of a task, to be read: its head with the way back, its conversation, and a line to steer it while it runs.

import { html, nothing } from "lit";
import type { Panel } from "../panel-context.js";
import { errorLine, oneLine } from "../safe-text.js";
import type { PanelState, SessionView } from "../state.js";
import { actsOf } from "../surface.js";
import { steerTask } from "../task-verbs.js";
import { isUnended, type KnownTask, spentText, taskNamed } from "../tasks.js";
import { go } from "../verbs.js";
import { pending } from "./dock.js";
import { titleOf } from "./header.js";
import { icon, iconButton, spinner, type View } from "./parts.js";
import { activityOf, acts, taskState } from "./task-card.js";
import { worktreeOutcome } from "./task-worktree.js";
import type { Timeline } from "./timeline.js";
import { working } from "./working.js";

const STEER = "task-steer";

/** The panel as the views of a conversation see it, with the session of the task in place of the one in front. */
class TaskPanel implements Panel {
  readonly readOnly = true;
  readonly isTask = true;
  readonly #panel: Panel;

  constructor(panel: Panel) {
    this.#panel = panel;
  }

  get state(): PanelState {
    const { state } = this.#panel;
    // Its changes of files are reviewed in the session that gave it.
    const changeSet = state.session?.changeSet;
    const view = state.task?.view;
    return { ...state, place: "transcript", session: view && { ...view, changeSet } };
  }

  get host(): Panel["host"] {
    return this.#panel.host;
  }

  dispatch(action: Parameters<Panel["dispatch"]>[0]): void {
    this.#panel.dispatch(action);
  }
}

export function taskPage(panel: Panel, timeline: Timeline, toasts: View): View {
  const { session, task: open } = panel.state;
  if (!session || !open) return nothing;
  const task = taskNamed(session, open.id);
  const shown = new TaskPanel(panel);
  return html`<div class="place">
      ${head(panel, session, task)}
      ${
        open.view
          ? timeline.view(shown)
          : html`<div class="pad grow">${task?.state === "queued" ? "It waits until another task ends." : spinner()}</div>`
      }
      ${open.problem ? html`<div class="pad">${errorLine(open.problem)}</div>` : nothing}
    </div>
    <div class="bottom">
      ${toasts} ${open.view ? working(shown, open.view) : nothing} ${pending(panel, session)}
      ${task?.state === "running" ? actsOf(panel, "operator", steer(panel, task)) : nothing}
    </div>`;
}

function head(panel: Panel, session: SessionView, task: KnownTask | undefined): View {
  const giver = titleOf(session) || "Conversation";
  const back = () => go(panel, "transcript");
  return html`<header class="task-head">
    <button type="button" class="link back" title="Back to the conversation (Escape)" @click=${back}>
      ${icon("arrow-left")} <span class="unseen">Back to</span> <span class="clip">${giver}</span>
    </button>
    <div class="task-name">
      ${icon("robot")}
      <h2 class="grow">${oneLine(task?.description ?? "Task")}</h2>
      ${task ? html`<span class="badge">${oneLine(task.preset)}</span> ${taskState(task)}` : nothing}
    </div>
    ${task ? details(panel, task) : nothing}
  </header>`;
}

function details(panel: Panel, task: KnownTask): View {
  const spent = spentText(task, panel.state.nowMs || Date.now());
  return html`<div class="task-line dim">${isUnended(task) ? html`${activityOf(task)} · ` : nothing}${spent}</div>
    ${worktreeOutcome(panel, task)}
    <div class="mark-acts">${acts(panel, task, { isOpened: true })}</div>`;
}

/** A line of words to the task. */
function steer(panel: Panel, task: KnownTask): View {
  const name = oneLine(task.description);
  const send = () => {
    const found = document.getElementById(STEER);
    if (!(found instanceof HTMLTextAreaElement) || !found.value.trim()) return;
    const text = found.value;
    found.value = "";
    steerTask(panel, task.session, text, () => {
      if (found.value === "") found.value = text;
    });
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  };
  return html`<div class="composer steer">
    <textarea id=${STEER} rows="2" aria-label="Message to the task ${name}" placeholder="Steer this task" @keydown=${pressed}></textarea>
    <div class="tools"><span class="grow"></span>${iconButton({ icon: "send", title: "Send to the task", act: send, more: "send" })}</div>
  </div>`;
}
