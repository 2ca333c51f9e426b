// What a task changed in its worktree, file by file and hunk by hunk, to choose what is merged.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { FileChange, Hunk } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import type { TaskReview } from "../state.js";
import { discardTask, mergeTask } from "../task-verbs.js";
import { chosenOf, partsOfFile, taskNamed } from "../tasks.js";
import { plural, shortPath } from "../words.js";
import { countedLines, hunkLines, OPS } from "./diff.js";
import { placeHead } from "./header.js";
import { counts, icon, iconButton, spinner, type View } from "./parts.js";
import { worktreeOutcome } from "./task-worktree.js";

export function taskChanges(panel: Panel): View {
  const { session, taskReview: review, busy } = panel.state;
  const task = review && taskNamed(session, review.task);
  if (!review || !task) return placeHead(panel, "Changes of a task");
  const files = review.changeSet?.files ?? [];
  const { added, gone } = countedLines(files.flatMap(({ hunks }) => hunks));
  const openAll = iconButton({
    icon: "diff-multiple",
    title: "Open all changes in one diff editor",
    act: () => panel.host.post({ type: "diffTask", task: review.task }),
  });
  return html`${placeHead(panel, `Changes of ${oneLine(task.description)}`, files.length > 0 ? html`${counts(added, gone)} ${openAll}` : nothing)}
    <div class="place-list">
      ${review.changeSet === undefined && busy["taskChanges"] ? html`<div class="pad">${spinner()}</div>` : nothing}
      ${review.changeSet && files.length === 0 ? html`<div class="empty dim">The task changed nothing in its worktree.</div>` : nothing}
      ${repeat(
        files,
        (one) => one.uri,
        (one) => fileView(panel, review, one),
      )}
    </div>
    ${files.length > 0 ? html`<div class="place-foot">${worktreeOutcome(panel, task)} ${answers(panel, review)}</div>` : nothing}`;
}

function answers(panel: Panel, review: TaskReview): View {
  const { task } = review;
  const { count, total, isAll } = chosenOf(review);
  const disabled = panel.state.busy[`worktree:${task}`] === true;
  const words = isAll
    ? `Merge ${total === 1 ? "the change" : `all ${total} changes`}`
    : `Merge ${count} of ${plural(total, "change")}`;
  return html`<div class="answers">
    <button type="button" class="primary" ?disabled=${disabled || count === 0} @click=${() => mergeTask(panel, task, { what: "chosen" })}>${words}</button>
    <button type="button" class="secondary" ?disabled=${disabled} @click=${() => discardTask(panel, task, { force: false })}>Discard</button>
  </div>`;
}

function fileView(panel: Panel, review: TaskReview, file: FileChange): View {
  const path = oneLine(shortPath(file.uri, panel.state.session?.roots));
  const parts = partsOfFile(file);
  const kept = parts.filter((one) => !review.left.has(one)).length;
  const { added, gone } = countedLines(file.hunks);
  return html`<div class="file-diff" role="group" aria-label=${path}>
    <div class="file-head">
      <input
        type="checkbox"
        aria-label="Merge ${path}"
        .checked=${kept === parts.length}
        .indeterminate=${kept > 0 && kept < parts.length}
        @change=${(event: Event) => choose(panel, review, parts, isChecked(event))}
      />
      <button type="button" class="path" title="Open ${path} as a diff" @click=${() => panel.host.post({ type: "diffTask", task: review.task, uri: file.uri })}>
        ${icon(OPS[file.op] ?? "diff-modified", `op-${file.op}`)}<span class="path-text">${path}</span>
      </button>
      ${file.hunks.length > 0 ? counts(added, gone) : nothing}
    </div>
    ${file.binary ? html`<div class="dim pad">A binary file.</div>` : nothing}
    ${repeat(
      file.hunks,
      (hunk) => hunk.id,
      (hunk) => hunkView(panel, review, file, hunk),
    )}
  </div>`;
}

function hunkView(panel: Panel, review: TaskReview, file: FileChange, hunk: Hunk): View {
  const line0 = hunk.after.start.line;
  const isLeft = review.left.has(hunk.id);
  return html`<div class="hunk ${isLeft ? "left-out" : ""}" role="group" aria-label="Change at line ${line0 + 1}">
    <div class="hunk-head">
      <input
        type="checkbox"
        aria-label="Merge the change at line ${line0 + 1}"
        .checked=${!isLeft}
        @change=${(event: Event) => choose(panel, review, [hunk.id], isChecked(event))}
      />
      <button
        type="button"
        class="hunk-line"
        title="Show in the diff editor"
        @click=${() => panel.host.post({ type: "diffTask", task: review.task, uri: file.uri, line0 })}
      >
        Line ${line0 + 1}
      </button>
    </div>
    ${hunkLines(panel, hunk)}
  </div>`;
}

function isChecked(event: Event): boolean {
  return event.currentTarget instanceof HTMLInputElement && event.currentTarget.checked;
}

function choose(panel: Panel, review: TaskReview, parts: readonly string[], isChosen: boolean): void {
  const left = new Set(review.left);
  for (const one of parts)
    if (isChosen) left.delete(one);
    else left.add(one);
  panel.dispatch({ type: "taskReview", review: { ...review, left } });
}
