// A task under the call that gave it: who works on it, how it stands, what it reports, and what can be done about it.

import { html, nothing } from "lit";
import { unsafeHTML } from "lit/directives/unsafe-html.js";
import type { TaskInfo } from "../../shared/wire.js";
import { markdownHtml } from "../markdown.js";
import type { Panel } from "../panel-context.js";
import type { ToolRow } from "../rows.js";
import { errorLine, oneLine } from "../safe-text.js";
import { actsOf, may } from "../surface.js";
import { askToDiscard, mergeTask, openTask, resumeTask, reviewTask, stopTask } from "../task-verbs.js";
import {
  canContinue,
  isUnended,
  type KnownTask,
  mergedParts,
  reportOf,
  spentText,
  taskOf,
} from "../tasks.js";
import { plural } from "../words.js";
import { moreButton } from "./folding.js";
import { field } from "./output.js";
import { icon, spinner, type View } from "./parts.js";
import { fold, isOpen } from "./row-context.js";
import { worktreeOutcome } from "./task-worktree.js";

const LINES_SHOWN = 6;
const CHARACTERS_SHOWN = 600;

/** Icons and names of the states. */
const STATES: Readonly<Record<string, [string, string]>> = {
  queued: ["clock", "waits"],
  completed: ["check", "done"],
  failed: ["error", "failed"],
  cancelled: ["stop-circle", "stopped"],
  budget: ["credit-card", "budget reached"],
  lost: ["debug-disconnect", "interrupted"],
};

export function taskCard(panel: Panel, row: ToolRow): View {
  const task = taskOf(row, panel.state.session?.tasks ?? []);
  const open = isOpen(panel, row.key, { usually: true });
  const name = nameOf(row, task);
  const isBad = task ? task.state === "failed" : row.status === "error";
  return html`<div class="tool task ${row.phase} ${isBad ? "bad" : ""}" role="group" aria-label="Task: ${name}">
    <div class="tool-line">
      <button type="button" class="tool-head" aria-expanded=${String(open)} @click=${() => fold(panel, row.key, !open)}>
        ${icon("robot", "tool-icon")} <span class="tool-title">${name}</span>
        ${task ? html`<span class="badge">${oneLine(task.preset)}</span> ${taskState(task)}` : callState(row)}
        ${icon("chevron-right", `turn ${open ? "open" : ""}`)}
      </button>
    </div>
    ${open ? html`<div class="tool-body task-body">${task ? body(panel, row, task) : refusal(row)}</div>` : nothing}
  </div>`;
}

function nameOf({ input, partial }: ToolRow, task: KnownTask | undefined): string {
  const given = field(input ?? partial, "description");
  return oneLine(task?.description ?? (typeof given === "string" ? given : "")) || "Task";
}

/** Shows the state of a task as an icon and a word. */
export function taskState(task: KnownTask): View {
  if (task.state === "running")
    return html`<span class="state">${spinner()}<span class="unseen">running</span></span>`;
  const [name, word] = STATES[task.state] ?? ["question", oneLine(task.state)];
  const shown =
    task.state === "completed"
      ? html`<span class="unseen">${word}</span>`
      : html`<span class="took">${word}</span>`;
  return html`<span class="state ${task.state}">${shown}${icon(name)}</span>`;
}

/** Says what a task does now. */
export function activityOf({
  state,
  activity,
}: Pick<TaskInfo, "state"> & { activity?: string | undefined }): string {
  if (state === "queued") return "waits until another task ends";
  if (state === "running") return oneLine(activity ?? "") || "thinking";
  return STATES[state]?.[1] ?? oneLine(state);
}

/** The call has no task yet, or was refused. */
function callState(row: ToolRow): View {
  if (row.phase !== "ended")
    return html`<span class="state">${spinner()}<span class="unseen">being given</span></span>`;
  return html`<span class="state">${icon(row.status === "ok" ? "check" : "error")}</span>`;
}

function refusal(row: ToolRow): View {
  const text = row.content
    .map((block) => (block.type === "text" ? (block as { text: string }).text : ""))
    .join("");
  return text ? html`<div class="pad">${errorLine(text)}</div>` : nothing;
}

function body(panel: Panel, row: ToolRow, task: KnownTask): View {
  const spent = spentText(task, panel.state.nowMs || Date.now());
  return html`
    ${isUnended(task) ? html`<div class="task-line clip" title=${activityOf(task)}>${activityOf(task)}</div>` : nothing}
    ${task.error ? html`<div class="task-line">${errorLine(task.error)}</div>` : nothing}
    ${report(panel, row, task)} ${spent ? html`<div class="task-line dim spent-line">${where(task)}${spent}</div>` : nothing}
    ${worktreeOutcome(panel, task)}
    <div class="mark-acts">${acts(panel, task)}</div>`;
}

function where({ worktree, background, state }: KnownTask): View {
  if (worktree) return html`<span title="Works in the git worktree ${oneLine(worktree)}">worktree</span> · `;
  return background && state === "running" ? html`in the background · ` : nothing;
}

/** The first lines of the report, and the rest behind a button. */
function report(panel: Panel, row: ToolRow, task: KnownTask): View {
  const text = reportOf(row, task, panel.state.session?.reports ?? {});
  if (!text || isUnended(task)) return nothing;
  const key = `report:${row.key}`;
  const lines = text.split("\n");
  const open = isOpen(panel, key, { usually: false });
  const short = lines.slice(0, LINES_SHOWN).join("\n").slice(0, CHARACTERS_SHOWN);
  const isLong = short.length < text.length;
  return html`<div class="prose task-report" role="region" aria-label="Report">${unsafeHTML(markdownHtml(isLong && !open ? `${short} …` : text))}</div>
    ${isLong ? moreButton(panel, key, { open, all: plural(lines.length, "line") }) : nothing}`;
}

/** The buttons of a task; one whose session is open already is not opened again. */
export function acts(panel: Panel, task: KnownTask, { isOpened = false } = {}): View {
  const { id } = task;
  const disabled = panel.state.busy[`task:${id}`] === true;
  const open = isOpened || task.state === "queued" ? nothing : act(task, "Open", () => openTask(panel, task));
  if (isUnended(task))
    return html`${open} ${actsOf(
      panel,
      "approver",
      act(task, "Stop", () => stopTask(panel, id), { disabled }),
    )}`;
  return html`${open}
    ${canContinue(task) && may(panel, "operator") ? act(task, "Continue", () => resumeTask(panel, id), { disabled }) : nothing}
    ${worktreeActs(panel, task)}`;
}

function worktreeActs(panel: Panel, task: KnownTask): View {
  const what = panel.state.worktrees[task.id]?.what;
  if (!task.worktree || what === "discarded" || what === "asked") return nothing;
  const { id } = task;
  const disabled = panel.state.busy[`worktree:${id}`] === true;
  const isAllMerged = mergedParts(panel.state.worktrees[id]) === "all";
  return html`${act(task, "Review changes", () => reviewTask(panel, task), { isFirst: !isAllMerged, disabled })}
    ${isAllMerged || !may(panel, "operator") ? nothing : act(task, "Merge", () => mergeTask(panel, id, { what: "all" }), { disabled })}
    ${actsOf(
      panel,
      "operator",
      act(task, "Discard", () => askToDiscard(panel, id), { disabled }),
    )}`;
}

function act(
  task: KnownTask,
  words: string,
  pressed: () => void,
  { isFirst = false, disabled = false } = {},
): View {
  return html`<button
    type="button"
    class=${isFirst ? "primary" : "secondary"}
    aria-label="${words}: ${oneLine(task.description)}"
    ?disabled=${disabled}
    @click=${pressed}
  >
    ${words}
  </button>`;
}
