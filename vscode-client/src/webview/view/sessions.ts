// Earlier sessions, with a search through all that was said in them.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { OtherSession } from "../../shared/messages.js";
import type { SessionInfo } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import { editorOnly, isWeb } from "../surface.js";
import { deleteSession, loadSessions, openSession, rename } from "../verbs.js";
import { agoText, baseName, plural } from "../words.js";
import { placeHead } from "./header.js";
import { icon, iconButton, spinner, type View } from "./parts.js";

export function sessions(panel: Panel): View {
  const { lists, session } = panel.state;
  const add = iconButton({ icon: "add", title: "New session", act: () => openSession(panel, "new") });
  return html`${placeHead(panel, "Sessions", editorOnly(panel, add))}
    <div class="search">
      ${icon("search")}
      <input
        type="search"
        placeholder="Search titles and messages"
        aria-label="Search sessions"
        .value=${lists.sessionQuery}
        @input=${(event: Event) => loadSessions(panel, (event.currentTarget as HTMLInputElement).value)}
      />
    </div>
    ${session && !panel.readOnly ? titleField(panel, session.title ?? "") : nothing}
    <div class="place-list" role="list" aria-label="Sessions">
      ${
        lists.sessions
          ? repeat(
              lists.sessions,
              (one) => one.session,
              (one) => entry(panel, one),
            )
          : html`<div class="pad">${spinner()}</div>`
      }
      ${lists.sessions?.length === 0 ? html`<div class="empty dim">${lists.sessionQuery ? "No sessions found." : "No sessions yet."}</div>` : nothing}
      ${
        lists.sessionsNext
          ? html`<button type="button" class="secondary wide" @click=${() => loadSessions(panel, lists.sessionQuery, lists.sessionsNext)}>Show more</button>`
          : nothing
      }
    </div>`;
}

function titleField(panel: Panel, title: string): View {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("title");
    if (field instanceof HTMLInputElement && field.value.trim()) rename(panel, field.value.trim());
  };
  return html`<form class="search" @submit=${submit}>
    ${icon("tag")}
    <input name="title" type="text" placeholder="Title of this session" aria-label="Title of this session" .value=${title} />
    <button type="submit" class="secondary">Rename</button>
  </form>`;
}

function entry(panel: Panel, one: SessionInfo): View {
  const now = panel.state.session?.session === one.session;
  const title = oneLine(one.title ?? one.preview) || "Untitled session";
  return html`<div class="entry ${now ? "current" : ""}" role="listitem">
    <button type="button" class="entry-main" aria-current=${now ? "true" : nothing} @click=${() => openSession(panel, one.session)}>
      <span class="entry-title clip">${now ? shared(panel) : html`${doing(panel.state.others[one.session])}${unread(panel, one.session)}`}${title}</span>
      <span class="entry-detail dim clip">
        ${isWeb(panel) ? `${baseName(one.workspace)} · ` : ""}${agoText(one.modified, panel.state.nowMs || Date.now())} · ${plural(one.messages, "message")}${one.model ? ` · ${one.model.slice(one.model.indexOf("/") + 1)}` : ""}
      </span>
      ${one.title ? html`<span class="entry-detail dim clip">${oneLine(one.preview)}</span>` : nothing}
    </button>
    ${now || isWeb(panel) ? nothing : iconButton({ icon: "trash", title: `Delete ${title}`, act: () => sure(panel, one.session) })}
    ${panel.state.menu === `delete:${one.session}` ? confirm(panel, one.session) : nothing}
  </div>`;
}

const DOING: Readonly<Record<OtherSession["doing"], View>> = {
  asks: html`<span class="badge">needs your answer</span> `,
  works: html`<span class="badge">working</span> `,
  idle: nothing,
};

/** Says in how many other windows or terminals the session in front is open too. */
function shared(panel: Panel): View {
  const others = (panel.state.session?.clients.length ?? 1) - 1;
  return others > 0
    ? html`<span class="badge">also open in ${plural(others, "other window")}</span> `
    : nothing;
}

function doing(other: OtherSession | undefined): View {
  if (!other) return nothing;
  const waiting = other.unreviewed;
  return html`${DOING[other.doing]}${waiting > 0 ? html`<span class="badge">${plural(waiting, "change")} to review</span> ` : nothing}`;
}

function unread(panel: Panel, session: string): View {
  return panel.state.unread.includes(session) ? html`<span class="badge">finished</span> ` : nothing;
}

function sure(panel: Panel, session: string): void {
  panel.dispatch({ type: "menu", name: `delete:${session}` });
}

function confirm(panel: Panel, session: string): View {
  return html`<div class="confirm" role="alertdialog" aria-label="Delete the session?">
    <span class="grow">Delete this session? This cannot be undone.</span>
    <button type="button" class="primary" @click=${() => {
      panel.dispatch({ type: "menu", name: undefined });
      deleteSession(panel, session);
    }}>Delete</button>
    <button type="button" class="secondary" @click=${() => panel.dispatch({ type: "menu", name: undefined })}>Keep</button>
  </div>`;
}
