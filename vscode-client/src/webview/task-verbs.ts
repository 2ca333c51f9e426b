// What the user does with tasks: open, stop, continue, steer, and review, merge or discard what one changed in its worktree.

import { newId } from "./ids.js";
import type { Panel } from "./panel-context.js";
import { textOf } from "./rows.js";
import type { MergedParts } from "./state.js";
import { chosenOf, isUnended, type KnownTask, mergedParts } from "./tasks.js";
import { attempt, refreshChanges } from "./verbs.js";
import { baseName } from "./words.js";

/** Of the items of a task, those in which its report is looked for. */
const LAST = 5;

export function stopTask(panel: Panel, id: string): void {
  attempt(panel, `task:${id}`, async () => {
    await panel.host.request("agent/task/stop", { id });
  });
}

export function resumeTask(panel: Panel, id: string): void {
  attempt(panel, `task:${id}`, async () => {
    await panel.host.request("agent/task/resume", { id });
  });
}

/** Reads the reports that came by themselves before the session was shown. */
export function loadReports(panel: Panel): void {
  const { session } = panel.state;
  if (!session) return;
  for (const task of session.tasks) {
    if (isUnended(task) || !task.background || session.reports[task.id] !== undefined) continue;
    const asked = { session: task.session, limit: LAST };
    panel.host.request("agent/session/read", asked).then(
      ({ items }) => {
        const last = items.findLast((one) => one.kind === "message" && one.role === "assistant");
        const text = last?.kind === "message" ? textOf(last.content) : "";
        panel.dispatch({ type: "taskReport", session: session.session, task: task.id, text });
      },
      // The card shows no report then, and opening the task says why.
      () => undefined,
    );
  }
}

/** Opens the session of a task in the panel; the session that gave it stays the one in front. */
export function openTask(panel: Panel, { id, session }: KnownTask): void {
  panel.dispatch({ type: "taskOpened", task: { id, session } });
}

/** Says something to a task while it runs; what was not taken is given back to `refused`. */
export function steerTask(panel: Panel, session: string, text: string, refused: () => void): void {
  const messageId = newId();
  const content = [{ type: "text" as const, text }];
  attempt(panel, `steer:${messageId}`, async () => {
    try {
      // A task that has just ended does not begin another run.
      const said = {
        session,
        messageId,
        content,
        delivery: "steer",
        ifIdle: "reject",
        context: { open: [] },
      };
      await panel.host.request("agent/prompt", said);
    } catch (error) {
      refused();
      throw error;
    }
  });
}

/** Shows what a task changed, to choose from, and its diffs beside it in the editor. */
export function reviewTask(panel: Panel, { id, description }: KnownTask): void {
  panel.dispatch({ type: "taskReview", review: { task: id, changeSet: undefined, left: new Set() } });
  panel.dispatch({ type: "went", place: "taskChanges" });
  attempt(panel, "taskChanges", async () => {
    const changeSet = await panel.host.request("agent/task/changes", { id });
    const { taskReview: before } = panel.state;
    if (before?.task !== id) return;
    panel.dispatch({ type: "taskReview", review: { ...before, changeSet } });
    if (changeSet.files.some((one) => !one.binary))
      panel.host.post({ type: "diffTask", task: id, name: description });
  });
}

/** Merges what is chosen, or everything; all of that or nothing. */
export function mergeTask(panel: Panel, id: string, { what }: { what: "all" | "chosen" }): void {
  const { taskReview, worktrees } = panel.state;
  const before = mergedParts(worktrees[id]);
  const chosen = what === "chosen" && taskReview?.task === id ? chosenOf(taskReview, before) : undefined;
  const part = !chosen || chosen.isAll ? {} : { hunks: chosen.hunks, files: chosen.files };
  const parts = !chosen || chosen.isAll || before === "all" ? "all" : new Set([...before, ...chosen.parts]);
  attempt(panel, `worktree:${id}`, async () => {
    const { written, checkpoint } = await panel.host.request("agent/task/merge", { id, ...part });
    const outcome = { what: "merged", written, checkpoint, parts, before } as const;
    panel.dispatch({ type: "worktree", task: id, outcome });
    refreshChanges(panel);
  });
}

/** Takes the newest merge back; what the user has changed since stays. */
export function undoMerge(
  panel: Panel,
  id: string,
  { checkpoint, before }: { checkpoint: string; before: MergedParts },
): void {
  attempt(panel, `worktree:${id}`, async () => {
    const asked = { checkpoint, scope: "files", onConflict: "merge" };
    const { skipped } = await panel.host.request("agent/checkpoint/restore", asked);
    const names = skipped.map((one) => baseName(one.uri)).join(", ");
    if (skipped[0]) throw new Error(`Not undone in ${names}: ${skipped[0].why}`);
    panel.dispatch({ type: "worktree", task: id, outcome: { what: "undone", parts: before } });
    refreshChanges(panel);
  });
}

/** Asks whether to discard what a task changed. */
export function askToDiscard(panel: Panel, id: string): void {
  const before = panel.state.worktrees[id];
  panel.dispatch({ type: "worktree", task: id, outcome: { what: "asked", before } });
}

/** Removes the worktree of a task, also if it has changes that were not merged. */
export function discardTask(panel: Panel, id: string): void {
  attempt(panel, `worktree:${id}`, async () => {
    const { keptRef } = await panel.host.request("agent/task/discard", { id, force: true });
    panel.dispatch({ type: "worktree", task: id, outcome: { what: "discarded", keptRef } });
    if (panel.state.place === "taskChanges") panel.dispatch({ type: "went", place: "transcript" });
  });
}
