// The one reducer of the panel: what it knows after something happened. Pure, no DOM.

import type { Place, TaskMessage, ToPanel } from "../shared/messages.js";
import type { ChangeSet, Item, JsonValue, QueueItem } from "../shared/wire.js";
import { type ComposerAction, compose, filled, left } from "./composing.js";
import { follow, sessionOf } from "./reduce-session.js";
import { rowsOfItems, type SaidRow } from "./rows.js";
import type {
  Lists,
  OpenTask,
  PanelState,
  SessionView,
  TaskReview,
  Toast,
  WorktreeOutcome,
} from "./state.js";
import { taskView } from "./tasks.js";

/** What the panel itself does. */
export type LocalAction =
  | { type: "composer"; action: ComposerAction }
  | { type: "went"; place: Place; focus?: string | undefined }
  | { type: "folded"; key: string; open: boolean }
  | { type: "find"; find: PanelState["find"] }
  | { type: "menu"; name: string | undefined }
  | { type: "busy"; name: string; on: boolean }
  | { type: "withoutContext"; on: boolean }
  | { type: "noted"; request: string; note: string }
  | ({ type: "toast" } & Omit<Toast, "id">)
  | { type: "untoast"; id: number }
  | { type: "listed"; lists: Partial<Lists> }
  | { type: "changeSet"; session: string; changeSet: ChangeSet }
  | { type: "taskOpened"; task: Pick<OpenTask, "id" | "session"> }
  | { type: "taskReport"; session: string; task: string; text: string }
  | { type: "taskReview"; review: TaskReview }
  | { type: "worktree"; task: string; outcome: WorktreeOutcome | undefined }
  | { type: "rendered"; key: string; view: { [key: string]: JsonValue } }
  | { type: "queue"; queue: readonly QueueItem[] }
  | { type: "older"; session: string; items: readonly Item[]; older: string | undefined }
  | { type: "reread"; session: string; items: readonly Item[]; older: string | undefined }
  | { type: "ticked"; nowMs: number };

export type Action = Exclude<ToPanel, { type: "answer" }> | LocalAction;

const TOASTS_SHOWN = 4;

export function reduce(state: PanelState, action: Action): PanelState {
  switch (action.type) {
    case "hello":
      return {
        ...state,
        greeted: true,
        host: action.state,
        surface: action.host ?? "editor",
        role: action.role ?? "operator",
        notifications: action.notifications,
        trusted: action.trusted,
        folders: action.folders,
      };
    case "context":
      return { ...state, context: action.focus };
    case "others":
      return {
        ...state,
        others: Object.fromEntries(action.sessions.map((one) => [one.session, one])),
        unread: action.unread ?? [],
      };
    case "snapshot":
      return replaced(state, sessionOf(action, state.session));
    case "events":
      return withModel(
        state,
        onSession(state, action.session, (session) => follow(session, action.events)),
      );
    case "task":
      return taskRead(state, action);
    case "compose":
      return { ...state, place: "transcript", composer: filled(state.composer, action) };
    case "review":
      return { ...state, review: action };
    case "notice":
      return { ...state, toasts: toasted(state.toasts, action) };
    case "show":
      return {
        ...arrived(state, action.what),
        focus: action.focus,
        menu: undefined,
        ...(action.find && { find: state.find ?? { query: "", at: 0 } }),
      };
    case "older":
    case "reread":
      return paged(state, action);
    default:
      return local(state, action);
  }
}

type Simple = Exclude<LocalAction, { type: "older" | "reread" }>;

function local(state: PanelState, action: Simple): PanelState {
  switch (action.type) {
    case "composer":
      return {
        ...state,
        composer: compose(state.composer, action.action),
        toasts: action.action.type === "cleared" ? lasting(withoutRefusals(state.toasts)) : state.toasts,
      };
    case "went":
      return { ...arrived(state, action.place), focus: action.focus, menu: undefined };
    case "folded":
      return { ...state, folds: { ...state.folds, [action.key]: action.open } };
    case "find":
      return { ...state, find: action.find, ...(action.find && { place: searched(state.place) }) };
    case "menu":
      return { ...state, menu: action.name };
    case "busy":
      return { ...state, busy: marked(state.busy, action) };
    case "withoutContext":
      return { ...state, withoutContext: action.on };
    case "noted":
      return { ...state, notes: { ...state.notes, [action.request]: action.note } };
    case "toast":
      return { ...state, toasts: toasted(state.toasts, action) };
    case "untoast":
      return { ...state, toasts: state.toasts.filter((one) => one.id !== action.id) };
    case "listed":
      return { ...state, lists: { ...state.lists, ...action.lists } };
    case "changeSet":
      if (state.session?.session !== action.session) return state;
      return { ...state, session: { ...state.session, changeSet: action.changeSet } };
    case "taskOpened": {
      const task = { ...action.task, view: undefined, problem: undefined };
      return { ...state, place: "task", task, menu: undefined, find: undefined };
    }
    case "taskReport":
      return onSession(state, action.session, (session) => ({
        ...session,
        reports: { ...session.reports, [action.task]: action.text },
      }));
    case "taskReview":
      return { ...state, taskReview: action.review };
    case "worktree":
      return { ...state, worktrees: settled(state.worktrees, action) };
    case "rendered":
      return state.session ? { ...state, session: rendered(state.session, action) } : state;
    case "queue":
      return state.session ? { ...state, session: { ...state.session, queue: action.queue } } : state;
    case "ticked":
      return { ...state, nowMs: action.nowMs };
  }
}

/** An open task is closed when the user goes elsewhere, but for its changes. */
function arrived(state: PanelState, place: Place): PanelState {
  const task = place === "task" || place === "taskChanges" ? state.task : undefined;
  return { ...state, place, task };
}

/** Changes the session of that id: the one that is shown, or that of the open task. */
function onSession(state: PanelState, id: string, change: (session: SessionView) => SessionView): PanelState {
  const { session, task } = state;
  if (session?.session === id) return { ...state, session: change(session) };
  if (task?.view?.session === id) return { ...state, task: { ...task, view: change(task.view) } };
  return state;
}

function taskRead(state: PanelState, message: TaskMessage): PanelState {
  const { session, task } = state;
  if (!session || task?.session !== message.session) return state;
  const view = taskView(session, message, task.view);
  return { ...state, task: { ...task, view, problem: message.problem } };
}

/** The search is in the conversation, or in that of the open task. */
function searched(place: Place): Place {
  return place === "task" ? "task" : "transcript";
}

function settled(
  worktrees: PanelState["worktrees"],
  { task, outcome }: { task: string; outcome: WorktreeOutcome | undefined },
): PanelState["worktrees"] {
  const { [task]: _, ...rest } = worktrees;
  return outcome ? { ...rest, [task]: outcome } : rest;
}

/** Removes the refusal of a prompt that had no model, once one is chosen. */
function withModel(before: PanelState, state: PanelState): PanelState {
  const model = state.session?.config.model ?? null;
  if (model === null || before.session?.config.model !== null) return state;
  return { ...state, toasts: withoutRefusals(state.toasts) };
}

/** Another session takes nothing along of the one before but the words in the composer. */
function replaced(state: PanelState, session: PanelState["session"]): PanelState {
  if (state.session?.session === session?.session) return { ...state, session };
  const { models, keyless, commands, sessions, sessionsNext, sessionQuery, modelQuery } = state.lists;
  const kept = { models, keyless, commands, sessions, sessionsNext, sessionQuery, modelQuery };
  const lists: Lists = {
    ...kept,
    costs: undefined,
    rules: undefined,
    nodes: undefined,
    leaf: null,
    checkpoints: undefined,
    preview: undefined,
  };
  const composer = left(state.composer);
  const toasts = lasting(state.toasts);
  return {
    ...state,
    session,
    task: undefined,
    taskReview: undefined,
    worktrees: {},
    folds: {},
    lists,
    composer,
    toasts,
    place: "transcript",
    menu: undefined,
    find: undefined,
  };
}

function paged(state: PanelState, action: Extract<LocalAction, { type: "older" | "reread" }>): PanelState {
  const read = rowsOfItems(action.items, {});
  return onSession(state, action.session, (session) => {
    if (action.type === "reread") return { ...session, rows: read, older: action.older };
    const known = new Set(session.rows.map((row) => row.key));
    const rows = [...read.filter((row) => !known.has(row.key)), ...session.rows];
    return { ...session, rows, older: action.older };
  });
}

function rendered(session: SessionView, { key, view }: { key: string; view: SaidRow["view"] }): SessionView {
  const rows = session.rows.map((row) => (row.key === key && row.kind === "said" ? { ...row, view } : row));
  return { ...session, rows };
}

function marked(busy: PanelState["busy"], { name, on }: { name: string; on: boolean }): PanelState["busy"] {
  const { [name]: _, ...rest } = busy;
  return on ? { ...rest, [name]: true } : rest;
}

/** Who goes on has read what was said of the step before; what failed stays until it is taken away. */
function lasting(toasts: readonly Toast[]): readonly Toast[] {
  return toasts.filter((one) => one.level === "error");
}

/** Removes the refusals of earlier prompts, which the next prompt or a change of the model answers. */
function withoutRefusals(toasts: readonly Toast[]): readonly Toast[] {
  return toasts.filter((one) => one.about !== "prompt");
}

function toasted(toasts: readonly Toast[], { level, text, about }: Omit<Toast, "id">): readonly Toast[] {
  const id = 1 + Math.max(0, ...toasts.map((one) => one.id));
  const others = toasts.filter((one) => one.text !== text);
  return [...others, { id, level, text, ...(about && { about }) }].slice(-TOASTS_SHOWN);
}
