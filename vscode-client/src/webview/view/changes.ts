// All that the session changed and that waits for the user's word, file by file.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { Panel } from "../panel-context.js";
import { resolve } from "../verbs.js";
import { fileDiff } from "./diff.js";
import { placeHead } from "./header.js";
import { counts, spinner, type View } from "./parts.js";

const FILES_SHOWN = 100;

export function changes(panel: Panel): View {
  const { session, busy } = panel.state;
  const set = session?.changeSet;
  if (!session) return placeHead(panel, "Changes");
  const waiting = (set?.files ?? [])
    .map((file) => ({ file, hunks: file.hunks.filter((hunk) => hunk.state === "pending") }))
    .filter((one) => one.hunks.length > 0);
  const all = (action: "accept" | "reject") => {
    if (set) resolve(panel, [{ changeSet: set.id, action }]);
  };
  const { additions, deletions } = session.changes;
  return html`${placeHead(panel, "Changes", waiting.length > 0 ? counts(additions, deletions) : nothing)}
    <div class="place-list">
      ${set === undefined && busy["changes"] ? html`<div class="pad">${spinner()}</div>` : nothing}
      ${waiting.length === 0 && !busy["changes"] ? html`<div class="empty dim">No change waits for your word.</div>` : nothing}
      ${
        waiting.length > 0
          ? html`<div class="answers pad">
            <button type="button" class="primary" @click=${() => all("accept")}>Keep all</button>
            <button type="button" class="secondary" @click=${() => all("reject")}>Reject all</button>
          </div>`
          : nothing
      }
      ${repeat(
        waiting.slice(0, FILES_SHOWN),
        (one) => one.file.uri,
        (one) => fileDiff(panel, one),
      )}
      ${waiting.length > FILES_SHOWN ? html`<div class="empty dim">And ${waiting.length - FILES_SHOWN} more files.</div>` : nothing}
    </div>`;
}
