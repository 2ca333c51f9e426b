// The line that shows what a run does at this moment, and for how long it has run.

import { html, nothing } from "lit";
import type { Panel } from "../panel-context.js";
import type { Row } from "../rows.js";
import { oneLine } from "../safe-text.js";
import { isBusy, type SessionView } from "../state.js";
import { elapsedText } from "../words.js";
import { spinner, type View } from "./parts.js";

/** Shows the activity of a busy session. A session that asks shows its question instead. */
export function working(panel: Panel, session: SessionView): View {
  if (!isBusy(session) || session.state === "requiresAction" || panel.state.place !== "transcript")
    return nothing;
  const since = session.run?.startedAt;
  const elapsed = since === undefined ? "" : elapsedText(Date.parse(since), panel.state.nowMs);
  return html`<div class="working dim">
    ${spinner()} <span class="grow clip">${activityText(session)}</span> <span class="elapsed">${elapsed}</span>
  </div>`;
}

/** Says what goes on, from the state of the session and its newest row. Pure. */
export function activityText(session: SessionView): string {
  if (session.state === "compacting") return "Compacting the conversation…";
  if (session.state === "retrying") return "Waiting to try again…";
  const running = session.rows.filter((row) => row.kind === "tool" && row.phase === "running");
  if (running.length > 1) return `Running ${running.length} tools…`;
  return newestText(running[0] ?? session.rows.at(-1), session.run?.id);
}

function newestText(row: Row | undefined, run: string | undefined): string {
  if (row === undefined || row.run === undefined || row.run !== run) return "Waiting for the model…";
  switch (row.kind) {
    case "tool":
      if (row.phase === "running") return `Running ${oneLine(row.title).slice(0, 200)}`;
      return row.phase === "asked"
        ? `Preparing ${oneLine(row.title).slice(0, 200)}`
        : "Waiting for the model…";
    case "thought":
      return row.streaming ? "Thinking…" : "Waiting for the model…";
    case "said":
      return row.streaming && row.text ? "Writing…" : "Waiting for the model…";
    default:
      return "Waiting for the model…";
  }
}
