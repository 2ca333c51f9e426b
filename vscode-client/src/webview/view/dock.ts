// What stands between the transcript and the composer: plan, changes, queue, and what waits for the user's word.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { QueueItem, TaskInfo } from "../../shared/wire.js";
import { openPath } from "../links.js";
import type { Panel } from "../panel-context.js";
import { partsOf } from "../rows.js";
import { oneLine } from "../safe-text.js";
import { isBusy, isPermission, type SessionView } from "../state.js";
import { actsOf } from "../surface.js";
import { openTask, resumeTask, stopTask } from "../task-verbs.js";
import { isUnended } from "../tasks.js";
import { openTodo } from "../todo.js";
import { changeQueue, go, resolve, stopBackground } from "../verbs.js";
import { plural } from "../words.js";
import { answersToAll, asksElsewhere, changesElsewhere, othersWaiting } from "./changes.js";
import { extensionViews } from "./extensions.js";
import { counts, icon, iconButton, type View } from "./parts.js";
import { permission } from "./permission.js";
import { question } from "./question.js";
import { fold, isOpen } from "./row-context.js";
import { stepList } from "./steps.js";
import { activityOf } from "./task-card.js";
import { working } from "./working.js";

export function dock(panel: Panel, session: SessionView): View {
  return html`${working(panel, session)} ${plan(panel, session)} ${background(panel, session)} ${tasks(panel, session)} ${changes(panel, session)} ${asksElsewhere(panel)} ${queue(panel, session)} ${extensionViews(session)} ${pending(panel, session)}`;
}

/**
 * Questions have a place of their own, outside the transcript: nothing that a model says can appear here, and
 * nothing here is made of Markdown.
 */
export function pending(panel: Panel, session: SessionView): View {
  if (session.pending.length === 0) return nothing;
  const [first, ...rest] = session.pending;
  if (!first) return nothing;
  return html`<section class="pending" aria-label="Tiller asks you">
    ${isPermission(first) ? permission(panel, first) : question(panel, first)}
    ${rest.length > 0 ? html`<div class="dim pad">${plural(rest.length, "more question")} after this one</div>` : nothing}
  </section>`;
}

function plan(panel: Panel, session: SessionView): View {
  const steps = session.plan.length > 0 ? session.plan : openTodo(session.rows);
  if (steps.length === 0) return nothing;
  const done = steps.filter((step) => step.status === "done").length;
  const active = steps.find((step) => step.status === "active");
  const open = isOpen(panel, "plan", { usually: false });
  return html`<section class="strip plan" aria-label="Plan">
    <button type="button" class="strip-head" aria-expanded=${String(open)} @click=${() => fold(panel, "plan", !open)}>
      ${icon("chevron-right", `turn ${open ? "open" : ""}`)} ${icon("checklist")}
      <span class="grow">${oneLine(active?.text ?? "Plan")}</span> <span class="dim">${done}/${steps.length}</span>
    </button>
    ${open ? stepList(steps) : nothing}
  </section>`;
}

/** Commands that go on beside the runs: what they are, where they listen, their output, and a stop. */
function background(panel: Panel, session: SessionView): View {
  if (session.background.length === 0) return nothing;
  return html`<section class="strip queue" aria-label="Background commands">
    <ul>
      ${repeat(
        session.background,
        (one) => one.id,
        (one) => html`<li>
          ${icon("server-process")} <span class="grow clip" title=${oneLine(one.command)}>${oneLine(one.command)}</span>
          ${one.ports.map((port) => html`<a class="badge" href="http://localhost:${port}/" title="Open in the browser">:${port}</a>`)}
          <span class="queue-acts">
            ${iconButton({ icon: "output", title: "Show its output", act: () => openPath(panel, { path: one.log, line0: 0 }) })}
            ${actsOf(panel, "approver", iconButton({ icon: "debug-stop", title: `Stop ${oneLine(one.command)}`, act: () => stopBackground(panel, one.id) }))}
          </span>
        </li>`,
      )}
    </ul>
  </section>`;
}

/** Tasks that go on beside the runs, and lost ones, which can be continued: what each does now, with the way to it. */
function tasks(panel: Panel, session: SessionView): View {
  const shown = session.tasks.filter((one) => (isUnended(one) && one.background) || one.state === "lost");
  if (shown.length === 0) return nothing;
  return html`<section class="strip queue" aria-label="Tasks">
    <ul>
      ${repeat(
        shown,
        (one) => one.id,
        (one) => taskLine(panel, one),
      )}
    </ul>
  </section>`;
}

function taskLine(panel: Panel, task: TaskInfo): View {
  const name = oneLine(task.description);
  const resume = { icon: "debug-continue", title: `Continue ${name}`, act: () => resumeTask(panel, task.id) };
  const stop = { icon: "debug-stop", title: `Stop ${name}`, act: () => stopTask(panel, task.id) };
  return html`<li>
    ${icon("robot")}
    <button type="button" class="link plain-link grow clip" title="Open the task ${name}" @click=${() => openTask(panel, task)}>
      ${name} <span class="dim">${activityOf(task)}</span>
    </button>
    <span class="badge">${oneLine(task.preset)}</span>
    <span class="queue-acts">
      ${task.state === "lost" ? actsOf(panel, "operator", iconButton(resume)) : actsOf(panel, "approver", iconButton(stop))}
    </span>
  </li>`;
}

function changes(panel: Panel, session: SessionView): View {
  const { files, additions, deletions, unreviewed } = session.changes;
  if (panel.state.place === "changes") return nothing;
  const here = files > 0 && unreviewed > 0;
  if (!here && othersWaiting(panel).length === 0) return nothing;
  const keepAll = () =>
    resolve(panel, [{ changeSet: session.changeSet?.id ?? session.session, action: "accept" }]);
  return html`<section class="strip changes" aria-label="Changes to review">
    ${
      here
        ? html`<div class="strip-head still">
      <button type="button" class="link grow" title="Show the changes of this session" @click=${() => go(panel, "changes")}>
        ${icon("diff-multiple")} ${plural(unreviewed, "change")} <span class="files-word">in ${plural(files, "file")}</span> ${counts(additions, deletions)}
      </button>
      ${actsOf(panel, "operator", answersToAll(panel, unreviewed, { keep: keepAll, at: "strip" }))}
    </div>`
        : nothing
    }
    ${changesElsewhere(panel)}
  </section>`;
}

function queue(panel: Panel, session: SessionView): View {
  if (session.queue.length === 0) return nothing;
  const last = session.queue.length - 1;
  return html`<section class="strip queue" aria-label="Queue">
    <div class="queue-title dim">
      ${icon("history")} ${session.paused ? "Paused: send or remove" : "Queued"}
    </div>
    <ul>
      ${repeat(
        session.queue,
        (item) => item.queueId,
        (item, index) => queued(panel, session, { item, index, last }),
      )}
    </ul>
  </section>`;
}

function queued(
  panel: Panel,
  session: SessionView,
  at: { item: QueueItem; index: number; last: number },
): View {
  const { item, index, last } = at;
  const { text, blocks } = partsOf(item.content, "user");
  const { queueId } = item;
  const going = isBusy(session);
  const change = (op: "remove" | "sendNow" | "steer") => changeQueue(panel, [{ op, queueId }]);
  const move = (to: number) => changeQueue(panel, [{ op: "move", queueId, index: to }]);
  return html`<li>
    ${item.delivery === "steer" ? html`<span class="badge">steer</span>` : nothing}
    <span class="grow clip" title=${oneLine(text)}>${oneLine(text) || plural(blocks.length, "attachment")}</span>
    ${
      panel.readOnly
        ? nothing
        : html`<span class="queue-acts">
      ${index > 0 ? iconButton({ icon: "arrow-up", title: "Move up", act: () => move(index - 1) }) : nothing}
      ${index < last ? iconButton({ icon: "arrow-down", title: "Move down", act: () => move(index + 1) }) : nothing}
      ${going && item.delivery !== "steer" ? iconButton({ icon: "debug-step-into", title: "Interrupt the run with it now", act: () => change("steer") }) : nothing}
      ${going ? nothing : iconButton({ icon: "send", title: "Send now", act: () => change("sendNow") })}
      ${iconButton({ icon: "edit", title: "Edit", act: () => panel.dispatch({ type: "composer", action: { type: "editing", queueId, text } }) })}
      ${iconButton({ icon: "close", title: "Remove", act: () => change("remove") })}
    </span>`
    }
  </li>`;
}
