// Takes answered questions, and what extensions show, into a session.

import type {
  JsonValue,
  PermissionResolved,
  Question,
  QuestionResolved,
  Snapshot,
  UiEvent,
} from "../shared/wire.js";
import type { Draft } from "./reduce-items.js";
import { type ExtensionView, isPermission, type SessionView } from "./state.js";

export function wordOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Gives what extensions show at the moment of a snapshot; a server that does not tell leaves what was known. */
export function viewsOf(snapshot: Snapshot, before: SessionView | undefined): SessionView["views"] {
  const told = (snapshot as { views?: ExtensionView[] }).views;
  if (!told) return before?.views ?? {};
  return Object.fromEntries(told.map((one) => [nameOf(one), one]));
}

export function uiChanged(draft: Draft, event: UiEvent): void {
  const shown = {
    type: event.type as ExtensionView["type"],
    extension: event.extension ?? "",
    view: event.view,
  };
  const name = nameOf(shown);
  const { [name]: _, ...rest } = draft.views;
  const gone = CONTENT[shown.type].every(
    (field) => event.view[field] === undefined || event.view[field] === null,
  );
  draft.views = gone ? rest : { ...rest, [name]: shown };
}

const CONTENT: Readonly<Record<ExtensionView["type"], readonly string[]>> = {
  "ui.status": ["text"],
  "ui.widget": ["view"],
  "ui.title": ["text", "title"],
};

function nameOf({ type, extension, view }: ExtensionView): string {
  return `${type}:${extension}:${wordOf(view["key"])}`;
}

export function permissionResolved(draft: Draft, event: PermissionResolved): void {
  const asked = draft.pending.find((one) => one.request === event.request);
  draft.pending = draft.pending.filter((one) => one.request !== event.request);
  if (!asked || !isPermission(asked)) return;
  const option = asked.options.find((one) => one.id === event.option);
  draft.rows.push({
    key: `answered:${event.request}`,
    run: event.run,
    at: event.at,
    kind: "answered",
    title: asked.title,
    answer: option?.label ?? "No answer",
    request: event.request,
    allowed: option?.kind.startsWith("allow") ?? false,
    by: event.by,
  });
}

export function questionResolved(draft: Draft, event: QuestionResolved): void {
  const asked = draft.pending.find((one) => one.request === event.request);
  draft.pending = draft.pending.filter((one) => one.request !== event.request);
  if (!asked || isPermission(asked)) return;
  const answers = Object.entries(event.answers ?? {}).map(([id, value]) => answerText(asked, id, value));
  draft.rows.push({
    key: `answered:${event.request}`,
    run: event.run,
    at: event.at,
    kind: "answered",
    title: asked.questions.map((one) => one.text).join(" · "),
    answer: answers.join(" · ") || "Declined",
    allowed: answers.length > 0,
    by: event.by,
  });
}

/** Answers name options by their id; people know them by their label. */
function answerText(asked: Question, id: string, value: JsonValue): string {
  const options = asked.questions.find((line) => line.id === id)?.options ?? [];
  const labels = [value]
    .flat()
    .map((one) => options.find((option) => option.id === one)?.label ?? String(one));
  return labels.join(", ");
}
