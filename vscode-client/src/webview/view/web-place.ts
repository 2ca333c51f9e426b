// Places that only the page of `tiller web` has: elements that it defines, and that read their own data.

import { html } from "lit";
import type { WebPlace } from "../../shared/messages.js";
import type { Panel } from "../panel-context.js";
import { openSession } from "../verbs.js";
import { placeHead } from "./header.js";
import type { View } from "./parts.js";

export function webPlace(panel: Panel, place: WebPlace): View {
  const { role, session } = panel.state;
  if (place === "shares")
    return html`${placeHead(panel, "Shared pages")}
      <tiller-shares class="place-list" .rights=${role} .session=${session?.session}></tiller-shares>`;
  const open = ({ detail }: CustomEvent<string>) => openSession(panel, detail);
  return html`${placeHead(panel, "Tasks for scripts")}
    <tiller-script-tasks class="place-list" .rights=${role} @open-session=${open}></tiller-script-tasks>`;
}
