// What a task changed in its worktree, file by file and hunk by hunk, to choose what is merged.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { repeat } from "lit/directives/repeat.js";
import type { FileChange, Hunk } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import type { MergedParts, TaskReview } from "../state.js";
import { editorOnly, may } from "../surface.js";
import { askToDiscard, mergeTask } from "../task-verbs.js";
import { chosenOf, isMerged, mergedParts, partsOfFile, taskNamed } from "../tasks.js";
import { plural, shortPath } from "../words.js";
import { countedLines, hunkLines, OPS } from "./diff.js";
import { placeHead } from "./header.js";
import { counts, icon, iconButton, spinner, type View } from "./parts.js";
import { worktreeOutcome } from "./task-worktree.js";

interface Shown {
  review: TaskReview;
  merged: MergedParts;
  /** The task as people know it. */
  name: string;
}

export function taskChanges(panel: Panel): View {
  const { session, taskReview: review, busy } = panel.state;
  const task = review && taskNamed(session, review.task);
  if (!review || !task) return placeHead(panel, "Changes of a task");
  const files = review.changeSet?.files ?? [];
  const merged = mergedParts(panel.state.worktrees[review.task]);
  const shown = { review, merged, name: task.description };
  const { added, gone } = countedLines(files.flatMap(({ hunks }) => hunks));
  const openAll = iconButton({
    icon: "diff-multiple",
    title: "Open all changes in one diff editor",
    act: () => panel.host.post({ type: "diffTask", task: review.task, name: task.description }),
  });
  return html`${placeHead(panel, `Changes of ${oneLine(task.description)}`, files.length > 0 ? html`${counts(added, gone)} ${editorOnly(panel, openAll)}` : nothing)}
    <div class="place-list">
      ${review.changeSet === undefined && busy["taskChanges"] ? html`<div class="pad">${spinner()}</div>` : nothing}
      ${review.changeSet && files.length === 0 ? html`<div class="empty dim">The task changed nothing in its worktree.</div>` : nothing}
      ${repeat(
        files,
        (one) => one.uri,
        (one) => fileView(panel, shown, one),
      )}
    </div>
    ${files.length > 0 ? html`<div class="place-foot">${worktreeOutcome(panel, task)} ${answers(panel, shown)}</div>` : nothing}`;
}

function answers(panel: Panel, { review, merged }: Shown): View {
  const { task } = review;
  if (panel.state.worktrees[task]?.what === "asked" || !may(panel, "operator")) return nothing;
  const { parts, total, isAll } = chosenOf(review, merged);
  const disabled = panel.state.busy[`worktree:${task}`] === true;
  const words = isAll ? `all ${plural(total, "change")}` : `${parts.length} of ${plural(total, "change")}`;
  const merge = () => mergeTask(panel, task, { what: "chosen" });
  return html`<div class="answers">
    ${total > 0 ? html`<button type="button" class="primary" ?disabled=${disabled || parts.length === 0} @click=${merge}>Merge ${words}</button>` : nothing}
    <button type="button" class="secondary" ?disabled=${disabled} @click=${() => askToDiscard(panel, task)}>Discard</button>
  </div>`;
}

function fileView(panel: Panel, shown: Shown, file: FileChange): View {
  const path = oneLine(shortPath(file.uri, panel.state.session?.roots));
  const rest = partsOfFile(file).filter((one) => !isMerged(shown.merged, one));
  const kept = rest.filter((one) => !shown.review.left.has(one));
  const { added, gone } = countedLines(file.hunks);
  const isWhole = file.hunks.length === 0;
  return html`<div class="file-diff" role="group" aria-label=${path}>
    <div class="file-head">
      ${choice(panel, shown, rest, {
        name: `Merge ${path}`,
        isChosen: kept.length > 0,
        isPart: kept.length > 0 && kept.length < rest.length,
      })}
      <button type="button" class="path" title="Open ${path} as a diff" ?disabled=${isWhole} @click=${() => diff(panel, shown, { uri: file.uri })}>
        ${icon(OPS[file.op] ?? "diff-modified", `op-${file.op}`)}<span class="path-text">${path}</span>
      </button>
      ${isWhole ? nothing : counts(added, gone)} ${rest.length === 0 ? html`<span class="badge">merged</span>` : nothing}
    </div>
    ${file.binary ? html`<div class="dim pad">A binary file.</div>` : nothing}
    ${repeat(
      file.hunks,
      (hunk) => hunk.id,
      (hunk) => hunkView(panel, shown, file, hunk),
    )}
  </div>`;
}

function hunkView(panel: Panel, shown: Shown, { uri }: FileChange, hunk: Hunk): View {
  const line0 = hunk.after.start.line;
  const rest = isMerged(shown.merged, hunk.id) ? [] : [hunk.id];
  const isChosen = rest.some((one) => !shown.review.left.has(one));
  return html`<div class="hunk ${isChosen ? "" : "left-out"}" role="group" aria-label="Change at line ${line0 + 1}">
    <div class="hunk-head">
      ${choice(panel, shown, rest, { name: `Merge the change at line ${line0 + 1}`, isChosen, isPart: false })}
      <button type="button" class="hunk-line" title="Show in the diff editor" @click=${() => diff(panel, shown, { uri, line0 })}>
        Line ${line0 + 1}
      </button>
      ${rest.length === 0 ? html`<span class="badge">merged</span>` : nothing}
    </div>
    ${hunkLines(panel, hunk)}
  </div>`;
}

interface Choice {
  name: string;
  isChosen: boolean;
  isPart: boolean;
}

/** A box that chooses parts; there is none for what was merged. */
function choice(
  panel: Panel,
  { review }: Shown,
  parts: readonly string[],
  { name, isChosen, isPart }: Choice,
): View {
  if (parts.length === 0) return nothing;
  return html`<input
    type="checkbox"
    aria-label=${name}
    .checked=${live(isChosen && !isPart)}
    .indeterminate=${isPart}
    @change=${(event: Event) => choose(panel, review, parts, isChecked(event))}
  />`;
}

function diff(panel: Panel, { review, name }: Shown, at: { uri: string; line0?: number }): void {
  panel.host.post({ type: "diffTask", task: review.task, name, ...at });
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
