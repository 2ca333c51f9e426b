// The line at the top: which session this is, and the ways to the other places.

import { html, nothing } from "lit";
import type { Place } from "../../shared/messages.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import type { SessionView } from "../state.js";
import { compact, exportSession, fork, go, openSession } from "../verbs.js";
import { icon, iconButton, type View } from "./parts.js";
import { menuItem, menuKey } from "./pickers.js";

const PLACES: readonly [Place, string, string][] = [
  ["sessions", "history", "Sessions"],
  ["tree", "git-branch", "Branches of this session"],
  ["checkpoints", "discard", "Checkpoints"],
];

export function header(panel: Panel): View {
  const { session, place } = panel.state;
  const title = session ? titleOf(session) : "Tiller";
  const others = (session?.clients.length ?? 1) - 1;
  return html`<header class="header">
    <button type="button" class="session-title" title="Show sessions" @click=${() => go(panel, "sessions")}>
      <span class="clip">${title}</span>
    </button>
    ${others > 0 ? html`<span class="badge" title="This session is shown in other windows too">+${others}</span>` : nothing}
    <nav class="places" aria-label="Places">
      ${PLACES.map(([name, picture, words]) =>
        iconButton({ icon: picture, title: words, act: () => go(panel, name), pressed: place === name }),
      )}
      ${iconButton({ icon: "add", title: "New session", act: () => openSession(panel, "new") })} ${more(panel)}
    </nav>
  </header>`;
}

/** A session without a title is known by the words that began it. */
function titleOf(session: SessionView): string {
  const shown = Object.values(session.views).find((one) => one.type === "ui.title");
  const given = session.title ?? shown?.view["text"] ?? shown?.view["title"];
  if (typeof given === "string" && given) return oneLine(given);
  const first = session.rows.find((row) => row.kind === "said" && row.role === "user");
  return (first?.kind === "said" && oneLine(first.text).slice(0, 120)) || "New session";
}

function more(panel: Panel): View {
  const open = panel.state.menu === "more";
  const close = () => panel.dispatch({ type: "menu", name: undefined });
  const items: [string, string, () => void][] = [
    ["diff-multiple", "All changes", () => go(panel, "changes")],
    ["checklist", "Review changes…", () => panel.host.post({ type: "command", command: "tiller.review" })],
    ["hubot", "Models and providers", () => go(panel, "models")],
    ["fold", "Compact conversation", () => compact(panel)],
    ["repo-forked", "Fork this session", () => fork(panel, undefined)],
    ["markdown", "Export as Markdown", () => exportSession(panel, "markdown")],
    ["globe", "Export as HTML", () => exportSession(panel, "html")],
    ["settings-gear", "Settings", () => panel.host.post({ type: "command", command: "tiller.openSettings" })],
    ["output", "Show server log", () => panel.host.post({ type: "command", command: "tiller.showLog" })],
  ];
  return html`<span class="picker down">
    <button
      type="button"
      class="icon-button"
      title="More"
      aria-label="More"
      aria-haspopup="menu"
      aria-expanded=${String(open)}
      @click=${() => panel.dispatch({ type: "menu", name: open ? undefined : "more" })}
    >
      ${icon("ellipsis")}
    </button>
    ${
      open
        ? html`<div class="menu" role="menu" aria-label="More" @keydown=${(event: KeyboardEvent) => menuKey(panel, event)}>
          ${items.map(([picture, label, act]) =>
            menuItem(
              { id: label, label, icon: picture },
              {
                chosen: false,
                choose: () => {
                  close();
                  act();
                },
              },
            ),
          )}
        </div>`
        : nothing
    }
  </span>`;
}

/** The head of a place other than the transcript, with the way back. */
export function placeHead(panel: Panel, title: string, more: View = nothing): View {
  return html`<div class="place-head">
    ${iconButton({ icon: "arrow-left", title: "Back to the conversation", act: () => go(panel, "transcript") })}
    <h2 class="grow">${title}</h2>
    ${more}
  </div>`;
}
