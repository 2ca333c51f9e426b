// What the panel knows. Everything that is shown follows from one value of this shape.

import type {
  ContextMessage,
  Folder,
  Found,
  Gathered,
  HostState,
  Notifications,
  OtherSession,
  Place,
  ReviewMessage,
  Role,
} from "../shared/messages.js";
import type {
  Activity,
  Attendant,
  BackgroundInfo,
  Block,
  ChangeCounts,
  ChangeSet,
  Checkpoint,
  CheckpointScope,
  Command,
  CostsResult,
  JsonValue,
  ModelEntry,
  PermissionRequest,
  PlanStep,
  PreviewedFile,
  Question,
  QueueItem,
  Root,
  Rule,
  Sandbox,
  SessionConfig,
  SessionInfo,
  SessionState,
  TaskInfo,
  TreeNode,
  Usage,
} from "../shared/wire.js";
import type { Row } from "./rows.js";

/** A status, a widget or a title that an extension keeps on show. */
export interface ExtensionView {
  type: "ui.status" | "ui.widget" | "ui.title";
  extension: string;
  view: { [key: string]: JsonValue };
}

/** A session as it stands after the event `seq`. */
export interface SessionView {
  session: string;
  epoch: string;
  seq: number;
  state: SessionState;
  title: string | undefined;
  run: { id: string; startedAt: string } | undefined;
  rows: readonly Row[];
  /** Cursor of what is older than the first row; undefined when nothing is. */
  older: string | undefined;
  queue: readonly QueueItem[];
  paused: boolean;
  pending: readonly (PermissionRequest | Question)[];
  config: SessionConfig;
  usage: Usage;
  roots: readonly Root[];
  changes: ChangeCounts;
  /** The hunks behind `changes`; undefined until they were asked for. */
  changeSet: ChangeSet | undefined;
  checkpoints: number;
  clients: readonly Attendant[];
  sandbox: Sandbox | undefined;
  plan: readonly PlanStep[];
  background: readonly BackgroundInfo[];
  tasks: readonly TaskInfo[];
  /** How the reports of tasks begin that no call waited for, by the id of the task. */
  reports: Readonly<Record<string, string>>;
  activity: Activity;
  /** What extensions keep on show, by name. */
  views: Readonly<Record<string, ExtensionView>>;
  /** The newest thing that screen readers should say. */
  said: string;
}

/** Something that goes along with the words of the composer. */
export interface Attachment {
  id: number;
  block: Block;
  label: string;
  detail?: string | undefined;
  icon: string;
  /** URL of the web page that this stands for until it is read. */
  reading?: string | undefined;
}

/** What is offered below the cursor of the composer. */
export interface Offer {
  label: string;
  detail?: string | undefined;
  icon: string;
  /** Put in the place of what was typed. */
  insert: string;
  found?: Found | undefined;
  /** What the extension collects when this is chosen. */
  gather?: Gathered | undefined;
  /** URL of a web page that is attached when this is chosen. */
  page?: string | undefined;
}

export interface Offers {
  sign: "@" | "/" | "#";
  /** Where the word that is completed begins in the text. */
  start: number;
  items: readonly Offer[];
  chosen: number;
}

/** An earlier message that is being changed. Nothing is taken back before it is sent. */
export interface Rewriting {
  entry: string;
  /** Checkpoint of the files before the run of the message; undefined: that run changed none. */
  checkpoint: string | undefined;
  /** Whether the files go back too. */
  files: boolean;
}

/** Words that are being written, and what goes along with them. */
export interface Draft {
  text: string;
  attachments: readonly Attachment[];
}

export interface Composer {
  text: string;
  attachments: readonly Attachment[];
  offers: Offers | undefined;
  /** The queued words that are edited instead of new ones. */
  editing: string | undefined;
  /** The earlier message that is sent anew, in its place. */
  rewriting: Rewriting | undefined;
  /** What was being written when a queued or an earlier message took its place; it comes back afterwards. */
  draft: Draft | undefined;
  history: readonly string[];
  /** Place in the history, counted from the newest; -1 means not in it. */
  recalled: number;
  kept: string;
  /** How many messages were sent. */
  sends: number;
  /** Each raise asks for the focus. */
  focusAsked: number;
}

export interface Preview {
  checkpoint: string;
  scope: CheckpointScope;
  files: readonly PreviewedFile[];
}

/** What was asked of the server to fill a part of the panel. */
export interface Lists {
  sessions: readonly SessionInfo[] | undefined;
  sessionsNext: string | undefined;
  sessionQuery: string;
  nodes: readonly TreeNode[] | undefined;
  leaf: string | null;
  checkpoints: readonly Checkpoint[] | undefined;
  preview: Preview | undefined;
  models: readonly ModelEntry[] | undefined;
  /** Names of the providers that need no key, by id: servers on this machine or network. */
  keyless: ReadonlyMap<string, string> | undefined;
  modelQuery: string;
  /** Costs of model calls by day. */
  costs: CostsResult | undefined;
  /** The permission rules in force. */
  rules: readonly Rule[] | undefined;
  commands: readonly Command[] | undefined;
}

/** The task whose session is open in the panel. */
export interface OpenTask {
  id: string;
  session: string;
  /** Undefined until its session was read. */
  view: SessionView | undefined;
  /** Why it cannot be read. */
  problem: string | undefined;
}

/** What a task changed in its worktree, for the user to choose from. */
export interface TaskReview {
  task: string;
  /** Undefined until it was listed. */
  changeSet: ChangeSet | undefined;
  /** Ids of hunks, and URIs of files without hunks, that are not merged. */
  left: ReadonlySet<string>;
}

/** What was merged of a task: ids of hunks, and URIs of files without hunks; `all` also where nothing was listed. */
export type MergedParts = ReadonlySet<string> | "all";

/** What the user did with the worktree of a task. */
export type WorktreeOutcome =
  /** `before`: what was merged before the newest merge. */
  | {
      what: "merged";
      written: readonly string[];
      checkpoint: string | undefined;
      parts: MergedParts;
      before: MergedParts;
    }
  | { what: "undone"; parts: MergedParts }
  /** Whether to discard it is asked. */
  | { what: "asked"; before: WorktreeOutcome | undefined }
  | { what: "discarded"; keptRef: string };

export interface Toast {
  id: number;
  level: "info" | "warning" | "error";
  text: string;
  /** Set when it says why a prompt was refused. */
  about?: "prompt";
}

export interface PanelState {
  host: HostState;
  /** Where the panel is shown. */
  surface: "editor" | "web";
  /** The rights of the page. */
  role: Role;
  /** Undefined: there is no such choice. */
  notifications: Notifications | undefined;
  /** Sessions of this window that are not in front, by id. */
  others: Readonly<Record<string, OtherSession>>;
  /** Ids of sessions with a finished run that the user has not seen. */
  unread: readonly string[];
  greeted: boolean;
  trusted: boolean;
  folders: readonly Folder[];
  session: SessionView | undefined;
  place: Place;
  /** The file in front of the editor, which goes along with prompts. */
  context: ContextMessage["focus"];
  /** Whether the user leaves it out. */
  withoutContext: boolean;
  /** What is to be looked at first in `place`. */
  focus: string | undefined;
  composer: Composer;
  lists: Lists;
  /** The review that goes on, or the last one; undefined: there was none. */
  review: ReviewMessage | undefined;
  /** The task that is open in the place `task`. */
  task: OpenTask | undefined;
  /** What is chosen in the place `taskChanges`. */
  taskReview: TaskReview | undefined;
  /** What became of the worktrees of tasks since the session is shown, by the id of the task. */
  worktrees: Readonly<Record<string, WorktreeOutcome>>;
  /** What the user folded or unfolded, against what is usual. */
  folds: Readonly<Record<string, boolean>>;
  /** The search in the transcript, and which match is shown, from 0; undefined: it is closed. */
  find: { query: string; at: number } | undefined;
  /** Menus, by name; at most one is open. */
  menu: string | undefined;
  /** What was asked and is not answered yet. */
  busy: Readonly<Record<string, true>>;
  /** What this panel said along with its answers to permission requests, by request. */
  notes: Readonly<Record<string, string>>;
  toasts: readonly Toast[];
  /** Milliseconds since the epoch, moved on once a second while something counts time. */
  nowMs: number;
}

export const EMPTY_COMPOSER: Composer = {
  text: "",
  attachments: [],
  offers: undefined,
  editing: undefined,
  rewriting: undefined,
  draft: undefined,
  history: [],
  recalled: -1,
  sends: 0,
  kept: "",
  focusAsked: 0,
};

export const START: PanelState = {
  host: { ready: false },
  surface: "editor",
  role: "operator",
  notifications: undefined,
  others: {},
  unread: [],
  greeted: false,
  trusted: true,
  folders: [],
  session: undefined,
  place: "transcript",
  context: undefined,
  withoutContext: false,
  focus: undefined,
  composer: EMPTY_COMPOSER,
  lists: {
    sessions: undefined,
    sessionsNext: undefined,
    sessionQuery: "",
    nodes: undefined,
    leaf: null,
    checkpoints: undefined,
    preview: undefined,
    models: undefined,
    keyless: undefined,
    modelQuery: "",
    costs: undefined,
    rules: undefined,
    commands: undefined,
  },
  review: undefined,
  task: undefined,
  taskReview: undefined,
  worktrees: {},
  folds: {},
  find: undefined,
  menu: undefined,
  busy: {},
  notes: {},
  toasts: [],
  nowMs: 0,
};

/** Says whether something goes on that can be stopped. */
export function isBusy(session: SessionView): boolean {
  return session.state !== "idle" && session.state !== "error";
}

export function isPermission(asked: PermissionRequest | Question): asked is PermissionRequest {
  return "subject" in asked;
}
