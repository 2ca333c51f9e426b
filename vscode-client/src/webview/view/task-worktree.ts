// What became of the worktree of a task: merged and how to undo that, discarded, or held back with the way on.

import { html, nothing } from "lit";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import { discardTask, undoMerge } from "../task-verbs.js";
import type { KnownTask } from "../tasks.js";
import { plural, shortPath } from "../words.js";
import { icon, type View } from "./parts.js";

const NAMES_SHOWN = 5;

export function worktreeOutcome(panel: Panel, task: KnownTask): View {
  const { id } = task;
  const outcome = panel.state.worktrees[id];
  const disabled = panel.state.busy[`worktree:${id}`] === true;
  switch (outcome?.what) {
    case "merged": {
      const { written, checkpoint, before } = outcome;
      const undo = checkpoint === undefined ? undefined : () => undoMerge(panel, id, { checkpoint, before });
      return html`<div class="worktree-outcome" role="status">
        ${icon("git-merge")} <span class="grow">${mergedText(panel, written)}</span>
        ${undo ? html`<button type="button" class="secondary" ?disabled=${disabled} aria-label="Undo the merge" @click=${undo}>Undo</button>` : nothing}
      </div>`;
    }
    case "undone":
      return html`<div class="worktree-outcome dim" role="status">${icon("discard")} <span class="grow">The merge was undone.</span></div>`;
    case "discarded":
      return html`<div class="worktree-outcome dim" role="status">
        ${icon("trash")} <span class="grow">Discarded. Git keeps the changes as <code>${oneLine(outcome.keptRef)}</code>.</span>
      </div>`;
    case "asked": {
      const leave = () => panel.dispatch({ type: "worktree", task: id, outcome: outcome.before });
      return html`<div role="group" aria-label="Discard the changes">
        <div class="worktree-outcome">
          ${icon("warning")} <span class="grow">Remove the worktree of this task? Git keeps what is in it under a ref.</span>
        </div>
        <div class="mark-acts">
          <button type="button" class="secondary danger" ?disabled=${disabled} @click=${() => discardTask(panel, id)}>Discard changes</button>
          <button type="button" class="secondary" @click=${leave}>Cancel</button>
        </div>
      </div>`;
    }
    default:
      return nothing;
  }
}

function mergedText(panel: Panel, written: readonly string[]): string {
  if (written.length === 0) return "Nothing to merge: the files already have these changes.";
  const names = written
    .slice(0, NAMES_SHOWN)
    .map((one) => oneLine(shortPath(one, panel.state.session?.roots)));
  const rest = written.length - names.length;
  return `Merged into ${names.join(", ")}${rest > 0 ? ` and ${plural(rest, "more file")}` : ""}.`;
}
