// What extensions keep on show: a line of states, and widgets made of text, lists or tables.

import { html, nothing } from "lit";
import type { JsonValue } from "../../shared/wire.js";
import { oneLine, plainText } from "../safe-text.js";
import type { SessionView } from "../state.js";
import { icon, type View } from "./parts.js";

type Fields = { [key: string]: JsonValue };

const ROWS_SHOWN = 50;

export function extensionViews(session: SessionView): View {
  const all = Object.values(session.views);
  const widgets = all.filter((one) => one.type === "ui.widget");
  const states = all.filter((one) => one.type === "ui.status");
  return html`${widgets.map((one) => widget(one.extension, fieldsOf(one.view["view"])))}
  ${
    states.length > 0
      ? html`<div class="statuses dim" aria-label="States of extensions">
        ${states.map((one) => html`<span title=${oneLine(one.extension)}>${icon("extensions", "small")} ${wordOf(one.view["text"])}</span>`)}
      </div>`
      : nothing
  }`;
}

function widget(extension: string, view: Fields): View {
  const title = wordOf(view["title"]) || oneLine(extension);
  return html`<section class="strip widget" aria-label=${title}>
    <div class="queue-title dim">${icon("extensions", "small")} ${title}</div>
    ${body(view)}
  </section>`;
}

/** Shows a view of an extension: it says what, the panel decides how. */
export function body(view: Fields): View {
  const rows = listOf(view["rows"]).slice(0, ROWS_SHOWN);
  switch (view["kind"]) {
    case "list":
      return html`<ul class="steps">${rows.map((row) => listRow(fieldsOf(row)))}</ul>`;
    case "table":
      return html`<table>
        <thead><tr>${listOf(view["head"]).map((cell) => html`<th>${wordOf(cell)}</th>`)}</tr></thead>
        <tbody>${rows.map((row) => html`<tr>${listOf(row).map((cell) => html`<td>${wordOf(cell)}</td>`)}</tr>`)}</tbody>
      </table>`;
    default:
      return html`<div class="words">${plainText(typeof view["text"] === "string" ? view["text"] : "")}</div>`;
  }
}

function listRow(row: Fields): View {
  const done = row["done"];
  const sign = done === true ? "pass-filled" : done === false ? "circle-large-outline" : "circle-small";
  return html`<li class=${done === true ? "done" : ""}>${icon(sign)} ${wordOf(row["text"])}</li>`;
}

export function fieldsOf(value: JsonValue | undefined): Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function wordOf(value: JsonValue | undefined): string {
  return typeof value === "string" || typeof value === "number" ? oneLine(String(value)) : "";
}
