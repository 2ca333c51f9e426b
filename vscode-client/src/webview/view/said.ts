// What somebody said: the user's words with what came along, the model's words piece by piece.

import { html, nothing } from "lit";
import { unsafeHTML } from "lit/directives/unsafe-html.js";
import type { Block } from "../../shared/wire.js";
import type { Chunk } from "../chunks.js";
import { described } from "../composing.js";
import { markdownHtml } from "../markdown.js";
import type { Panel } from "../panel-context.js";
import { type Picture, pictureAddress } from "../pictures.js";
import type { SaidRow, ThoughtRow } from "../rows.js";
import { oneLine, plainText } from "../safe-text.js";
import { isWeb } from "../surface.js";
import { checkpointOf, fork, rewrite, showCheckpoint } from "../verbs.js";
import { plural } from "../words.js";
import { codeBlock } from "./code.js";
import { body } from "./extensions.js";
import { moreButton } from "./folding.js";
import { icon, iconButton, spinner, type View } from "./parts.js";
import { fold, isOpen } from "./row-context.js";

const LINES_SHOWN = 12;
const FOLDED_MAX = 4000;
const SHOWN_MAX = 200_000;
const cleaned = new WeakMap<Chunk, string>();

/** Shows one piece of what the model said. */
export function saidChunk(panel: Panel, key: string, chunk: Chunk): View {
  switch (chunk.kind) {
    case "prose":
      return html`<div class="prose">${unsafeHTML(proseHtml(chunk))}</div>`;
    case "code":
      return codeBlock(panel, key, chunk);
    case "plain":
      return html`<pre class="plain">${chunk.text}</pre>`;
  }
}

function proseHtml(chunk: Extract<Chunk, { kind: "prose" }>): string {
  const known = cleaned.get(chunk);
  if (known !== undefined) return known;
  const made = markdownHtml(chunk.source);
  cleaned.set(chunk, made);
  return made;
}

const DELIVERED: Readonly<Record<string, string>> = {
  steer: "steered",
  followUp: "followed up",
  nextTurn: "added",
};

export function userSaid(panel: Panel, row: SaidRow): View {
  const how = row.delivery ? DELIVERED[row.delivery] : undefined;
  return html`<div class="user">
    <div class="user-head">
      <span class="who">${row.role === "user" ? speaker(panel, row) : oneLine(row.customType ?? row.role)}</span>
      ${how ? html`<span class="badge">${how}</span>` : nothing}
      <span class="user-acts">${acts(panel, row)}</span>
    </div>
    ${row.blocks.length > 0 ? html`<div class="chips">${row.blocks.map((block) => chip(panel, block))}</div>` : nothing}
    ${row.view ? body(row.view) : words(panel, row)}
  </div>`;
}

/** The session of a task begins with what the agent gave it; whatever follows is the user's. */
function speaker(panel: Panel, { key }: SaidRow): string {
  const { session } = panel.state;
  const isFirst =
    session?.older === undefined && session?.rows.find((one) => one.kind === "said")?.key === key;
  return panel.isTask && isFirst ? "Task" : "You";
}

function words(panel: Panel, row: SaidRow): View {
  const text = plainText(row.text);
  const lines = text.split("\n");
  const long = lines.length > LINES_SHOWN + 3 || text.length > FOLDED_MAX;
  const open = isOpen(panel, row.key, { usually: false });
  const folded = lines.slice(0, LINES_SHOWN).join("\n").slice(0, FOLDED_MAX);
  const shown = long && !open ? folded : text.slice(0, SHOWN_MAX);
  if (!shown) return nothing;
  return html`<div class="words">${shown}</div>
    ${long ? moreButton(panel, row.key, { open, all: plural(lines.length, "line") }) : nothing}`;
}

function acts(panel: Panel, row: SaidRow): View {
  const { entry } = row;
  const copy = { icon: "copy", title: "Copy", act: () => panel.host.post({ type: "copy", text: row.text }) };
  if (!entry || row.role !== "user" || panel.readOnly || panel.state.session?.run) return iconButton(copy);
  const checkpoint = checkpointOf(panel, row);
  return html`${iconButton(copy)}
  ${iconButton({
    icon: "edit",
    title: "Edit message",
    act: () => rewrite(panel, row),
  })}
  ${checkpoint === undefined ? nothing : iconButton({ icon: "discard", title: "Restore the files to before this message…", act: () => showCheckpoint(panel, checkpoint) })}
  ${iconButton({ icon: "repo-forked", title: "Fork a new session from here", act: () => fork(panel, entry) })}`;
}

/** Shows something that came along with words. */
export function chip(panel: Panel, block: Block): View {
  const { label, detail, icon: name } = described(block);
  if (block.type === "image") return picture(panel, block as Picture);
  const uri = "uri" in block && typeof block.uri === "string" ? block.uri : undefined;
  const range = block.type === "resource" || block.type === "selection" ? rangeOf(block) : undefined;
  const body = html`${icon(name)}<span class="chip-label">${oneLine(label)}</span>
    ${detail ? html`<span class="chip-detail">${detail}</span>` : nothing}`;
  if (uri === undefined) return storedFile(panel, block, body);
  const open = () => panel.host.post({ type: "open", uri, ...(range && { range }) });
  return html`<button type="button" class="chip" title=${uri} @click=${open}>${body}</button>`;
}

/** A file that the server of the page has stored can be looked at; one that the panel of an editor names cannot. */
function storedFile(panel: Panel, block: Block, inner: View): View {
  const blob = block.type === "file" && isWeb(panel) ? (block as { blob?: string }).blob : undefined;
  if (blob === undefined || !/^[0-9a-f]{64}$/.test(blob)) return html`<span class="chip">${inner}</span>`;
  const url = new URL(`/v1/blobs/${blob}`, location.href).href;
  const open = () => panel.host.post({ type: "openLink", url });
  return html`<button type="button" class="chip" title="Open the file" @click=${open}>${inner}</button>`;
}

function rangeOf(block: Block): Extract<Block, { type: "selection" }>["range"] | undefined {
  return (block as Extract<Block, { type: "selection" }>).range;
}

export function picture(panel: Panel, block: Picture): View {
  const address = pictureAddress(panel, block, "whole");
  if (address === undefined) return html`<span class="chip">${icon("file-media")} Picture</span>`;
  return html`<img class="picture" alt="Picture" loading="lazy" src=${address} />`;
}

export function thought(panel: Panel, row: ThoughtRow): View {
  const open = isOpen(panel, row.key, { usually: false });
  const text = plainText(row.text).trim();
  if (!text && !row.streaming) return nothing;
  const first = text.split("\n", 1)[0]?.replace(/[*_#`]/g, "") ?? "";
  return html`<div class="thought ${open ? "open" : ""}">
    <button type="button" class="fold" aria-expanded=${String(open)} @click=${() => fold(panel, row.key, !open)}>
      ${row.streaming ? spinner() : icon("chevron-right", "turn")}
      <span class="fold-title">${row.streaming ? "Thinking…" : "Thought"}</span>
      ${open ? nothing : html`<span class="fold-hint">${first.slice(0, 160)}</span>`}
    </button>
    ${open ? html`<div class="prose dim">${unsafeHTML(markdownHtml(text.slice(0, 100_000)))}</div>` : nothing}
  </div>`;
}
