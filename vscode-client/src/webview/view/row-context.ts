// What the views of rows are given besides the panel.

import type { ChangeSet, FileChange, Hunk } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";

/** Says whether something is unfolded: as the user left it, or else as is usual. */
export function isOpen(panel: Panel, key: string, { usually }: { usually: boolean }): boolean {
  return panel.state.folds[key] ?? usually;
}

export function fold(panel: Panel, key: string, open: boolean): void {
  panel.dispatch({ type: "folded", key, open });
}

/** A file with those of its hunks that one tool call made. */
export interface FileHunks {
  file: FileChange;
  hunks: readonly Hunk[];
}

/** Gives what a tool call changed, as far as it still stands in the change set. */
export function hunksOf(changeSet: ChangeSet | undefined, call: string): FileHunks[] {
  return (changeSet?.files ?? [])
    .map((file) => ({ file, hunks: file.hunks.filter((hunk) => hunk.toolCall === call) }))
    .filter((one) => one.hunks.length > 0);
}
