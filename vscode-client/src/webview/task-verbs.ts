// What the user does with tasks: open, stop, continue, steer, and review, merge or discard what one changed in its worktree.

import { Refused } from "./host.js";
import { newId } from "./ids.js";
import type { Panel } from "./panel-context.js";
import { chosenOf, type KnownTask } from "./tasks.js";
import { attempt, refreshChanges, sentenceOf } from "./verbs.js";
import { baseName } from "./words.js";

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
      const said = { session, messageId, content, delivery: "steer", ifIdle: "reject", context: {} };
      await panel.host.request("agent/prompt", said);
    } catch (error) {
      refused();
      throw error;
    }
  });
}

/** Shows what a task changed, to choose from, and its diffs beside it in the editor. */
export function reviewTask(panel: Panel, id: string): void {
  panel.dispatch({ type: "taskReview", review: { task: id, changeSet: undefined, left: new Set() } });
  panel.dispatch({ type: "went", place: "taskChanges" });
  attempt(panel, "taskChanges", async () => {
    const changeSet = await panel.host.request("agent/task/changes", { id });
    const { taskReview: before } = panel.state;
    if (before?.task !== id) return;
    panel.dispatch({ type: "taskReview", review: { ...before, changeSet } });
    if (changeSet.files.some((one) => !one.binary)) panel.host.post({ type: "diffTask", task: id });
  });
}

/** Merges what is chosen, or everything where nothing was reviewed; all of it or nothing. */
export function mergeTask(panel: Panel, id: string, { what }: { what: "all" | "chosen" }): void {
  const { taskReview } = panel.state;
  const chosen = what === "chosen" && taskReview?.task === id ? chosenOf(taskReview) : undefined;
  const part = chosen === undefined || chosen.isAll ? {} : { hunks: chosen.hunks, files: chosen.files };
  attempt(panel, `worktree:${id}`, async () => {
    const done = await panel.host.request("agent/task/merge", { id, ...part });
    const { written, unchanged, checkpoint } = done;
    panel.dispatch({
      type: "worktree",
      task: id,
      outcome: { what: "merged", written, unchanged, checkpoint },
    });
    refreshChanges(panel);
  });
}

/** Takes a merge back; what the user has changed since stays. */
export function undoMerge(panel: Panel, id: string, checkpoint: string): void {
  attempt(panel, `worktree:${id}`, async () => {
    const asked = { checkpoint, scope: "files", onConflict: "merge" };
    const { skipped } = await panel.host.request("agent/checkpoint/restore", asked);
    const [first] = skipped;
    if (first)
      throw new Error(`Not undone in ${skipped.map((one) => baseName(one.uri)).join(", ")}: ${first.why}`);
    panel.dispatch({ type: "worktree", task: id, outcome: { what: "undone" } });
    refreshChanges(panel);
  });
}

/** Removes the worktree of a task; one with changes that were not merged is asked about first. */
export function discardTask(panel: Panel, id: string, { force }: { force: boolean }): void {
  attempt(panel, `worktree:${id}`, async () => {
    const before = panel.state.worktrees[id];
    try {
      const { keptRef } = await panel.host.request("agent/task/discard", {
        id,
        ...(force && { force }),
      });
      panel.dispatch({ type: "worktree", task: id, outcome: { what: "discarded", keptRef } });
    } catch (error) {
      if (force || !(error instanceof Refused)) throw error;
      panel.dispatch({
        type: "worktree",
        task: id,
        outcome: { what: "kept", why: sentenceOf(error), before },
      });
      return;
    }
    if (panel.state.place === "taskChanges") panel.dispatch({ type: "went", place: "transcript" });
  });
}
