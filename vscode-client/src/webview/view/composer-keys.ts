// What keys, pastes and drops do in the composer.

import { accept, complete } from "../completing.js";
import type { Panel } from "../panel-context.js";
import { send, take } from "../sending.js";
import { isBusy, type Offer } from "../state.js";
import { stop } from "../verbs.js";

export const FIELD = "composer-text";

function field(): HTMLTextAreaElement | undefined {
  const found = document.getElementById(FIELD);
  return found instanceof HTMLTextAreaElement ? found : undefined;
}

/** Gives the composer the focus, with the cursor at the end. */
export function focusComposer(): void {
  const found = field();
  found?.focus();
  found?.setSelectionRange(found.value.length, found.value.length);
}

/** Makes the text field as high as its words, up to what the style allows. */
export function fitComposer(): void {
  const found = field();
  if (!found) return;
  found.style.setProperty("height", "auto");
  found.style.setProperty("height", `${found.scrollHeight + 2}px`);
}

export function typed(panel: Panel, event: Event): void {
  const { value, selectionStart } = event.currentTarget as HTMLTextAreaElement;
  panel.dispatch({ type: "composer", action: { type: "typed", text: value } });
  complete(panel, value, selectionStart);
}

export function insert(panel: Panel, item: Offer): void {
  const cursor = accept(panel, item, field()?.selectionStart ?? 0);
  // The field has its new value only after the next time the panel is shown.
  requestAnimationFrame(() => requestAnimationFrame(() => field()?.setSelectionRange(cursor, cursor)));
}

export function pressed(panel: Panel, event: KeyboardEvent): void {
  if (event.isComposing) return;
  if (panel.state.composer.offers?.items.length && offerKey(panel, event)) {
    event.preventDefault();
    return;
  }
  switch (event.key) {
    case "Enter":
      entered(panel, event);
      break;
    case "Escape":
      escaped(panel);
      break;
    case "ArrowUp":
    case "ArrowDown":
      recall(panel, event);
  }
}

function entered(panel: Panel, event: KeyboardEvent): void {
  if (event.shiftKey) return;
  event.preventDefault();
  send(panel, event.altKey ? "followUp" : event.ctrlKey || event.metaKey ? "steer" : "auto");
}

function offerKey(panel: Panel, event: KeyboardEvent): boolean {
  const { offers: shown } = panel.state.composer;
  const item = shown?.items[shown.chosen];
  switch (event.key) {
    case "ArrowDown":
      panel.dispatch({ type: "composer", action: { type: "chose", step: 1 } });
      return true;
    case "ArrowUp":
      panel.dispatch({ type: "composer", action: { type: "chose", step: -1 } });
      return true;
    case "Enter":
    case "Tab":
      if (event.shiftKey || !item) return false;
      // A command that is typed whole is sent: there is nothing to complete.
      if (event.key === "Enter" && item.label === panel.state.composer.text.trim()) return false;
      insert(panel, item);
      return true;
    case "Escape":
      panel.dispatch({ type: "composer", action: { type: "offered", offers: undefined } });
      return true;
    default:
      return false;
  }
}

function escaped(panel: Panel): void {
  const { session, composer: state } = panel.state;
  if (state.editing || state.rewriting) leaveEditing(panel);
  else if (session && isBusy(session)) stop(panel);
}

export function leaveEditing(panel: Panel): void {
  panel.dispatch({ type: "composer", action: { type: "cleared", sent: "" } });
}

/** Up at the very beginning, and down at the very end, walk through what was said before. */
function recall(panel: Panel, event: KeyboardEvent): void {
  const { recalled } = panel.state.composer;
  const up = event.key === "ArrowUp";
  const field = event.currentTarget as HTMLTextAreaElement;
  if (!mayRecall(field, { up, recalled })) return;
  event.preventDefault();
  if (recalled === -1) {
    panel.dispatch({ type: "composer", action: { type: "remembered", history: saidBefore(panel) } });
  }
  panel.dispatch({ type: "composer", action: { type: "recalled", step: up ? 1 : -1 } });
}

function mayRecall(field: HTMLTextAreaElement, { up, recalled }: { up: boolean; recalled: number }): boolean {
  const { value, selectionStart, selectionEnd } = field;
  const atEdge =
    selectionStart === selectionEnd && (up ? selectionStart === 0 : selectionEnd === value.length);
  if (recalled === -1) return up && atEdge;
  return atEdge || !value.includes("\n");
}

function saidBefore(panel: Panel): string[] {
  const rows = panel.state.session?.rows ?? [];
  const said = rows.flatMap((row) =>
    row.kind === "said" && row.role === "user" && row.text ? [row.text] : [],
  );
  return [...new Set([...panel.state.composer.history, ...said.reverse()])].slice(0, 100);
}

export function pasted(panel: Panel, event: ClipboardEvent): void {
  if (event.clipboardData && take(panel, event.clipboardData)) event.preventDefault();
}

export function allowDrop(event: DragEvent): void {
  event.preventDefault();
}

export function dropped(panel: Panel, event: DragEvent): void {
  event.preventDefault();
  if (!event.dataTransfer || take(panel, event.dataTransfer)) return;
  const text = event.dataTransfer.getData("text/plain");
  if (text) panel.dispatch({ type: "compose", text });
}
