// The name of the session, which VS Code shows above the panel, and the heads of the other places.

import { html, nothing } from "lit";
import type { Notifications, Place, WebPlace } from "../../shared/messages.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import type { SessionView } from "../state.js";
import { actsOf, may } from "../surface.js";
import { go, openSession } from "../verbs.js";
import { icon, iconButton, type View } from "./parts.js";
import { menuKey } from "./pickers.js";

/** Gives the title of a session, else the words that began it; empty before the first. */
export function titleOf(session: SessionView): string {
  const shown = Object.values(session.views).find((one) => one.type === "ui.title");
  const given = session.title ?? shown?.view["text"] ?? shown?.view["title"];
  if (typeof given === "string" && given) return oneLine(given);
  const first = session.rows.find((row) => row.kind === "said" && row.role === "user");
  return (first?.kind === "said" && oneLine(first.text).slice(0, 120)) || "";
}

/** The bar that an editor would show above the panel: the way to other sessions, and the name of this one. */
export function topBar(panel: Panel): View {
  const { session, place } = panel.state;
  const sessions = () => go(panel, "sessions");
  const title = (session && titleOf(session)) || "New session";
  const folder = session?.roots.find((one) => one.primary)?.name;
  return html`<header class="top-bar">
    ${iconButton({ icon: "list-unordered", title: "Sessions", act: sessions, more: place === "sessions" ? "chosen" : "" })}
    <div class="grow">
      <h1 class="clip">${title}</h1>
      ${folder ? html`<div class="top-folder dim clip">${oneLine(folder)}</div>` : nothing}
    </div>
    ${actsOf(panel, "operator", iconButton({ icon: "add", title: "New session", act: () => openSession(panel, "new") }))}
    ${more(panel)}
  </header>`;
}

const MORE: readonly [Place, string, string][] = [
  ["changes", "Changes", "diff-multiple"],
  ["checkpoints", "Checkpoints", "history"],
  ["tree", "Branches", "list-tree"],
  ["models", "Models", "settings"],
  ["costs", "Costs by day", "graph"],
];
const WEB: readonly [WebPlace, string, string][] = [
  ["shares", "Shared pages", "link"],
  ["scriptTasks", "Tasks for scripts", "tasklist"],
];
const NOTIFIED: Readonly<Record<Notifications, string>> = {
  off: "Notify me when I am needed",
  on: "Stop notifications",
  blocked: "Notifications are blocked by the browser",
};

/** What an editor has in its own menus: the other places of the session, its export, and notifications. */
function more(panel: Panel): View {
  const open = panel.state.menu === "more";
  const toggle = () => panel.dispatch({ type: "menu", name: open ? undefined : "more" });
  return html`<span class="picker">
    ${iconButton({ icon: "ellipsis", title: "More", act: toggle, expanded: open })}
    ${
      open
        ? html`<div class="menu more-menu" role="menu" aria-label="More" @keydown=${(event: KeyboardEvent) => menuKey(panel, event)}>
            ${moreItems(panel)}
          </div>`
        : nothing
    }
  </span>`;
}

function moreItems(panel: Panel): View {
  const { notifications } = panel.state;
  const item = (name: string, words: string, act: () => void, disabled = false) => {
    const chosen = () => {
      panel.dispatch({ type: "menu", name: undefined });
      act();
    };
    return html`<button type="button" class="menu-item" role="menuitem" ?disabled=${disabled} @click=${chosen}>
      ${icon(name)} <span class="menu-label">${words}</span>
    </button>`;
  };
  const visit = (place: Place) => panel.dispatch({ type: "went", place });
  const places = () => html`${MORE.map(([place, words, name]) => item(name, words, () => visit(place)))}
    ${WEB.map(([place, words, name]) => item(name, words, () => panel.host.post({ type: "visit", place })))}`;
  return html`${may(panel, "observer") ? places() : nothing}
    ${item("desktop-download", "Export as Markdown", () => panel.host.post({ type: "command", command: "tiller.exportMarkdown" }))}
    ${
      notifications === undefined || !may(panel, "observer")
        ? nothing
        : item(
            notifications === "on" ? "bell-slash" : "bell",
            NOTIFIED[notifications],
            () => panel.host.post({ type: "notify", on: notifications !== "on" }),
            notifications === "blocked",
          )
    }`;
}

/** The head of a place other than the transcript, with the way back. */
export function placeHead(panel: Panel, title: string, more: View = nothing): View {
  return html`<div class="place-head">
    ${iconButton({ icon: "arrow-left", title: "Back to the conversation", act: () => go(panel, "transcript") })}
    <h2 class="grow">${title}</h2>
    ${more}
  </div>`;
}
