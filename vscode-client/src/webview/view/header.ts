// The name of the session, which VS Code shows above the panel, and the heads of the other places.

import { html, nothing } from "lit";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import type { SessionView } from "../state.js";
import { go, openSession } from "../verbs.js";
import { iconButton, type View } from "./parts.js";

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
    ${iconButton({ icon: "add", title: "New session", act: () => openSession(panel, "new") })}
  </header>`;
}

/** The head of a place other than the transcript, with the way back. */
export function placeHead(panel: Panel, title: string, more: View = nothing): View {
  return html`<div class="place-head">
    ${iconButton({ icon: "arrow-left", title: "Back to the conversation", act: () => go(panel, "transcript") })}
    <h2 class="grow">${title}</h2>
    ${more}
  </div>`;
}
