// All that the session changed and that waits for the user's word, file by file.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { OtherSession } from "../../shared/messages.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import { editorOnly, may } from "../surface.js";
import { go, openSession, rejectAll, resolve } from "../verbs.js";
import { plural } from "../words.js";
import { fileDiff } from "./diff.js";
import { placeHead } from "./header.js";
import { counts, icon, iconButton, spinner, type View } from "./parts.js";

const FILES_SHOWN = 100;
const SESSIONS_SHOWN = 3;

/** The two answers to all of this session's changes; where other sessions have some too, they say how many they mean. */
export function answersToAll(
  panel: Panel,
  count: number,
  act: { keep: () => void; at: "strip" | "page" },
): View {
  const these = othersWaiting(panel).length > 0 ? `${count}` : "all";
  const changes = `the ${plural(count, "change")} of this session`;
  return html`<button type="button" class=${act.at === "page" ? "primary" : "keep"} title="Keep ${changes}" @click=${act.keep}>Keep ${these}</button>
    <button type="button" class=${act.at === "page" ? "secondary" : "reject"} title="Reject ${changes}…" @click=${() => rejectAll(panel)}>Reject ${these}</button>`;
}

/** Sessions that are not in front and have changes to review, each with the way there. */
export function changesElsewhere(panel: Panel): View {
  const all = othersWaiting(panel);
  const rest = all.length - SESSIONS_SHOWN;
  return html`${all.slice(0, SESSIONS_SHOWN).map(
    ({ session, title, unreviewed }) =>
      html`<button type="button" class="link elsewhere clip" title="Open this session to review them" @click=${() => openSession(panel, session)}>
        ${plural(unreviewed, "change")} in ${title ? `“${oneLine(title)}”` : "an untitled session"}
      </button>`,
  )}
  ${rest > 0 ? html`<button type="button" class="link elsewhere" @click=${() => go(panel, "sessions")}>and in ${plural(rest, "more session")}</button>` : nothing}`;
}

/** Sessions that are not in front and wait for an answer, each with the way there. */
export function asksElsewhere(panel: Panel): View {
  const front = panel.state.session?.session;
  const all = Object.values(panel.state.others).filter(
    (one) => one.doing === "asks" && one.session !== front,
  );
  const rest = all.length - SESSIONS_SHOWN;
  if (all.length === 0) return nothing;
  return html`<section class="strip" aria-label="Other sessions that need an answer">
    ${all.slice(0, SESSIONS_SHOWN).map(
      ({ session, title }) =>
        html`<button type="button" class="link elsewhere clip" title="Open this session to answer" @click=${() => openSession(panel, session)}>
          ${icon("bell-dot")} Needs your answer: ${title ? `“${oneLine(title)}”` : "an untitled session"}
        </button>`,
    )}
    ${rest > 0 ? html`<button type="button" class="link elsewhere" @click=${() => go(panel, "sessions")}>and ${plural(rest, "more session")}</button>` : nothing}
  </section>`;
}

export function othersWaiting(panel: Panel): readonly OtherSession[] {
  const front = panel.state.session?.session;
  return Object.values(panel.state.others).filter((one) => one.unreviewed > 0 && one.session !== front);
}

export function changes(panel: Panel): View {
  const { session, busy } = panel.state;
  const set = session?.changeSet;
  if (!session) return placeHead(panel, "Changes");
  const waiting = (set?.files ?? [])
    .map((file) => ({ file, hunks: file.hunks.filter((hunk) => hunk.state === "pending") }))
    .filter((one) => one.hunks.length > 0);
  const keepAll = () => {
    if (set) resolve(panel, [{ changeSet: set.id, action: "accept" }]);
  };
  const { additions, deletions } = session.changes;
  const openAll = iconButton({
    icon: "diff-multiple",
    title: "Open all changes in one diff editor",
    act: () => panel.host.post({ type: "command", command: "tiller.showAllDiffs" }),
  });
  return html`${placeHead(panel, "Changes", waiting.length > 0 ? html`${counts(additions, deletions)} ${editorOnly(panel, openAll)}` : nothing)}
    <div class="place-list">
      ${set === undefined && busy["changes"] ? html`<div class="pad">${spinner()}</div>` : nothing}
      ${waiting.length === 0 && !busy["changes"] ? html`<div class="empty dim">No changes to review in this session.</div>` : nothing}
      ${
        waiting.length > 0 && may(panel, "operator")
          ? html`<div class="answers pad">
            ${answersToAll(panel, session.changes.unreviewed, { keep: keepAll, at: "page" })}
          </div>`
          : nothing
      }
      ${changesElsewhere(panel)}
      ${repeat(
        waiting.slice(0, FILES_SHOWN),
        (one) => one.file.uri,
        (one) => fileDiff(panel, one),
      )}
      ${waiting.length > FILES_SHOWN ? html`<div class="empty dim">And ${waiting.length - FILES_SHOWN} more files.</div>` : nothing}
    </div>`;
}
