// What the extension and its panel say to one another: two closed unions.

import type { PanelCommand } from "./commands.js";
import type { PanelMethod } from "./methods.js";
import type { AgentEvent, Block, Item, JsonValue, Range, RunResult, Snapshot } from "./wire.js";

/** Something that keeps the agent from working, in one sentence, and what can be done about it. */
export interface Problem {
  text: string;
  action?: { title: string; command: PanelCommand };
}

/** How the extension stands. Without `ready` and without a problem it is still starting. */
export interface HostState {
  ready: boolean;
  /** What goes on until it is ready, such as an installation. */
  doing?: string;
  problem?: Problem;
}

/** The rights of a page, from the fewest to the most; `reader` has conversations alone, as a page of the fleet. */
export const ROLES = ["reader", "observer", "approver", "operator"] as const;
export type Role = (typeof ROLES)[number];

/** Whether the browser shows a notification when a person is needed. */
export type Notifications = "off" | "on" | "blocked";

/** A folder of the workspace. */
export interface Folder {
  name: string;
  uri: string;
}

/** A file or symbol that can be named in a prompt. */
export interface Found {
  uri: string;
  /** Path below its workspace folder, or the name of a symbol. */
  label: string;
  /** Where it is, when the label does not say so. */
  detail?: string;
  /** The icon of VS Code, such as `symbol-class`. */
  icon: string;
  range?: Range;
}

/** Why a request was not granted. */
export interface RequestFailure {
  message: string;
  /** One of the server's kinds of errors. */
  kind?: string;
  hint?: string;
}

/** The first message, and said again whenever something in it changes. */
export interface Hello {
  type: "hello";
  state: HostState;
  windowFocused: boolean;
  trusted: boolean;
  folders: Folder[];
  /** `web`: the page of `tiller web`, without an editor; left out: the panel of an editor. */
  host?: "web";
  /** The rights of the page; left out: all of them. */
  role?: Role;
  /** Left out: there is no such choice. */
  notifications?: Notifications;
}

/** One sentence that is shown for a while. */
export interface Notice {
  type: "notice";
  level: "info" | "warning" | "error";
  text: string;
}

/** A session as a whole; replaces everything that was shown. */
export interface SnapshotMessage {
  type: "snapshot";
  session: string;
  epoch: string;
  seq: number;
  snapshot: Snapshot;
  /** The newest page of what came before the run of the snapshot, oldest first. */
  items?: Item[];
  /** Cursor of the page before `items`, for `before` of `agent/session/read`. */
  prev?: string;
}

/** The session of a task that a page has open: while the task runs with a snapshot and events after it, else as it was stored. */
export interface TaskMessage {
  type: "task";
  session: string;
  /** Undefined: the task does not run. */
  live?: { epoch: string; seq: number; snapshot: Snapshot };
  /** The newest page of its conversation, oldest first. */
  items: Item[];
  /** Cursor of the page before `items`, for `before` of `agent/session/read`. */
  prev?: string;
  /** Why it cannot be read. */
  problem?: string;
}

/** Events in order, without a hole since the snapshot or the message before. */
export interface EventsMessage {
  type: "events";
  session: string;
  events: AgentEvent[];
}

/** The answer to a `request`, `findFiles` or `findSymbols` of that id. */
export interface Answer {
  type: "answer";
  id: number;
  result?: unknown;
  error?: RequestFailure;
}

/** Puts something into the composer. */
export interface Compose {
  type: "compose";
  text?: string;
  blocks?: Block[];
  focus?: boolean;
  /** Instead of what is there; otherwise it is added. */
  replace?: boolean;
}

/** A part of the panel that a command can open. */
export type Place =
  | "transcript"
  | "sessions"
  | "tree"
  | "checkpoints"
  | "models"
  | "auth"
  | "changes"
  | "review"
  | "costs"
  | "rules"
  /** The session of a task, and what it changed in its worktree. */
  | "task"
  | "taskChanges"
  | WebPlace;

/** A place of the page of `tiller web`: links to sessions, and the tasks of its task API. */
export type WebPlace = "shares" | "scriptTasks";

/** Opens a part of the panel. */
export interface Show {
  type: "show";
  what: Place;
  /** A hunk, file or session to be looked at first. */
  focus?: string;
  /** Opens the search in the conversation. */
  find?: true;
}

/** A review that goes on, or how the last one ended; replaces the one before. */
export interface ReviewMessage {
  type: "review";
  /** What is compared with; undefined: what is not committed is looked at. */
  base?: string;
  /** What it does at the moment; missing when it is over. */
  doing?: string;
  result?: RunResult;
  /** Why it could not be done. */
  problem?: string;
}

/** A session of this window that is not in front, and still works, asks or has changes to review. */
export interface OtherSession {
  session: string;
  title?: string;
  doing: "asks" | "works" | "idle";
  unreviewed: number;
}

/** Those that are known; replaces what was said before. */
export interface OthersMessage {
  type: "others";
  sessions: OtherSession[];
  /** Ids of sessions in which a run ended that the user has not seen. */
  unread?: readonly string[];
}

/** What the editor adds to a prompt by itself: the file in front, and what is selected there. */
export interface ContextMessage {
  type: "context";
  /** Undefined: no file is in front. */
  focus?: { uri: string; selection?: Range };
}

/** What the extension can collect for a prompt. */
export type Gathered = "selection" | "problems" | "terminal" | "git";

export type ToPanel =
  | ContextMessage
  | Hello
  | OthersMessage
  | SnapshotMessage
  | TaskMessage
  | EventsMessage
  | Answer
  | Compose
  | Show
  | Notice
  | ReviewMessage;

/** The panel is there, also after it was built anew; answered by `hello` and a `snapshot`. */
export interface Ready {
  type: "ready";
}

/** Asks the server; the session that is shown is added. */
export interface PanelRequest {
  type: "request";
  id: number;
  method: PanelMethod;
  params: { [key: string]: JsonValue };
}

/** What the panel wants of the extension. */
export type ToHost =
  | Ready
  | PanelRequest
  | { type: "open"; uri: string; range?: Range }
  | { type: "openLink"; url: string }
  | { type: "diff"; uri: string; hunk?: string }
  /** Follows the session of a task for this page, instead of the one before; without `session`: none any more. */
  | { type: "followTask"; session?: string; isRunning?: boolean }
  /** Opens what a task changed in its worktree in a diff editor: one file, or all of them. */
  | { type: "diffTask"; task: string; name: string; uri?: string; line0?: number }
  | { type: "copy"; text: string }
  /** Types a command into a new terminal of the editor in that folder, without running it. */
  | { type: "openTerminal"; command: string; folder: string }
  /** Puts text where the cursor of the editor is. */
  | { type: "insert"; text: string }
  | { type: "command"; command: PanelCommand; args?: JsonValue[] }
  /** Both are answered with `{ items: Found[] }`. */
  | { type: "findFiles"; id: number; query: string }
  | { type: "findSymbols"; id: number; query: string }
  /** Both are answered with `{ blocks: Block[] }`, or refused where there is nothing. */
  | { type: "gather"; id: number; what: Gathered }
  | { type: "readPage"; id: number; url: string }
  /** Opens a plan as a document that can be edited. */
  | { type: "editPlan"; sha256: string; markdown: string }
  /** Answered with `{ text?: string }`: the document of a plan, if it is open. */
  | { type: "editedPlan"; id: number; sha256: string }
  /** How the session that is shown is called; empty: it has no name yet. */
  | { type: "titled"; title: string }
  /** Turns the notifications of a browser on, which asks the user for them, or off. */
  | { type: "notify"; on: boolean }
  /** Loads a place that only the page of `tiller web` has, and then shows it. */
  | { type: "visit"; place: WebPlace }
  | { type: "trust" };
