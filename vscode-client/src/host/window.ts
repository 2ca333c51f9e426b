// The parts of Tiller in one window, and how they are joined.

import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { ContextMessage, Hello } from "../shared/messages.js";
import type { EditorContext } from "../shared/wire.js";
import { Others } from "./agent/others.js";
import { asAgentError } from "./agent/port.js";
import { SessionFeed } from "./agent/session-feed.js";
import { Watch } from "./agent/watch.js";
import { editorContext } from "./editor/attention.js";
import { Findings } from "./editor/findings.js";
import { type EditorSide, makeEditorSide } from "./editor/side.js";
import { hear } from "./panel/hear.js";
import { PanelView } from "./panel/panel-view.js";
import { PlanDocuments } from "./panel/plan-documents.js";
import { onClosed, planEditor } from "./panel/plan-editor.js";
import { PanelRequests } from "./panel/requests.js";
import { TaskLinks } from "./panel/task-links.js";
import { type ShellEvents, Terminals } from "./panel/terminals.js";
import { TranscriptLink } from "./panel/transcript-link.js";
import { Daemon } from "./server/daemon.js";
import { makeClient } from "./server/language-client.js";
import { prepare } from "./server/prepare.js";
import { announceEnds, announceQuestions } from "./ui/asks.js";
import { Status } from "./ui/status.js";
import { tellTrust } from "./ui/trust.js";

const CLIENT_ID = "tiller.clientId";
const OTHERS = "tiller.otherSessions";
const PLANS = "tiller.planDocuments";

export interface Window {
  context: vscode.ExtensionContext;
  log: vscode.LogOutputChannel;
  daemon: Daemon;
  feed: SessionFeed;
  watch: Watch;
  others: Others;
  panel: PanelView;
  editor: EditorSide;
  findings: Findings;
}

/** Builds the parts; nothing is started. */
export function makeWindow(context: vscode.ExtensionContext): Window {
  const log = vscode.window.createOutputChannel("Tiller", { log: true });
  const daemon = new Daemon({
    prepare: (doing) => prepare(context, log, doing),
    client: (launch, folder, ended) =>
      makeClient({
        launch,
        folder,
        clientId: clientId(context.workspaceState),
        version: String(context.extension.packageJSON.version),
        restricted: !vscode.workspace.isTrusted,
        log,
        ended,
      }),
    log,
  });
  const feed = new SessionFeed(daemon);
  const watch = new Watch(feed);
  const others = new Others(daemon, feed, {
    get: () => context.workspaceState.get<string[]>(OTHERS, []),
    set: (ids) => void context.workspaceState.update(OTHERS, ids),
  });
  const link: { current?: TranscriptLink } = {};
  const terminals = new Terminals(vscode.window as ShellEvents);
  const plans = plansOf(context);
  const requests = new PanelRequests(daemon, feed);
  const tasks = new TaskLinks(daemon, (why) => log.info(`A task is not followed any more: ${why}`));
  const panel: PanelView = new PanelView({
    extension: context.extensionUri,
    hello: () => hello(daemon),
    left: (page) => tasks.leave(page),
    hear: (message, answer, page) =>
      void hear(message, {
        page,
        tasks,
        taskDiffs: editor.taskDiffs,
        requests,
        post: answer,
        titled: (title) => panel.titled(title),
        terminals,
        plans,
        picture: () => {
          void link.current?.show();
          panel.tellOthers(others.all, others.unread);
          findings.tell();
          panel.post(contextMessage(editorContext()));
        },
        log,
      }),
  });
  const findings = new Findings({
    port: daemon,
    feed,
    post: (message) => panel.post(message),
    show: () => panel.show("review"),
  });
  link.current = new TranscriptLink(
    feed,
    (message) => panel.post(message),
    (why) => log.warn(`The session cannot be shown: ${why}`),
  );
  const editor = makeEditorSide(daemon, { feed, others, log });
  editor.attention.changed.listen((seen) => panel.post(contextMessage(seen)));
  const closing = onClosed((uri) => plans.closed(uri));
  context.subscriptions.push(log, terminals, closing, tasks, link.current, feed, others, ...editor.parts, {
    dispose: () => void daemon.dispose(),
  });
  return { context, log, daemon, feed, watch, others, panel, editor, findings };
}

function plansOf(context: vscode.ExtensionContext): PlanDocuments {
  return new PlanDocuments(planEditor, {
    get: () => context.workspaceState.get<Record<string, string>>(PLANS, {}),
    set: (uris) => void context.workspaceState.update(PLANS, uris),
  });
}

function contextMessage({ focus }: EditorContext): ContextMessage {
  if (focus === undefined) return { type: "context" };
  const [selection] = focus.selections ?? [];
  const isEmpty =
    selection === undefined ||
    (selection.start.line === selection.end.line && selection.start.character === selection.end.character);
  return { type: "context", focus: { uri: focus.uri, ...(isEmpty ? {} : { selection }) } };
}

/** Gives the session in front, as requests name it; nothing before the first was opened. */
export function ofSession({ feed }: Pick<Window, "feed">): { session?: string } {
  return feed.session === undefined ? {} : { session: feed.session };
}

/** Joins the parts, and keeps the panel and the status bar up to date. */
export function joinParts(window: Window): void {
  const { context, daemon, feed, watch, others, panel, log } = window;
  const status = new Status();
  const show = () => {
    status.show(daemon.state, daemon.state.ready ? watch.now : undefined, others.all);
    const count = [watch.now, ...others.all].reduce((sum, one) => sum + (one?.pending.length ?? 0), 0);
    panel.badge(count, count === 1 ? "Tiller needs your answer" : `Tiller needs ${count} answers`);
  };
  daemon.changed.listen(() => {
    panel.sayHello();
    show();
  });
  watch.changed.listen(show);
  others.changed.listen(() => {
    show();
    panel.tellOthers(others.all, others.unread);
  });
  announceQuestions(watch, others, panel);
  announceEnds(feed, watch, others, panel);
  daemon.serving.listen(() => void begin(window));
  context.subscriptions.push(
    status,
    vscode.window.onDidChangeWindowState(() => panel.sayHello()),
    vscode.workspace.onDidChangeWorkspaceFolders(() => {
      panel.sayHello();
      if (daemon.state.ready) void tellTrust(daemon, context.workspaceState);
      else void daemon.start();
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("tiller.server")) void daemon.restart();
    }),
    // The window may do more now: the server is told at the start of a connection what it may do.
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      log.info("The workspace is trusted now.");
      void daemon.restart();
    }),
  );
}

/** Opens what the window had open last, whenever a server begins to serve. */
async function begin({ context, daemon, feed, others, log }: Window): Promise<void> {
  try {
    await feed.open(feed.session);
  } catch {
    // The session may be gone; the server offers another one.
    await feed
      .open()
      .catch((thrown: unknown) => log.error(`No session can be opened: ${asAgentError(thrown).message}`));
  }
  others.again();
  await tellTrust(daemon, context.workspaceState);
}

function hello(daemon: Daemon): Hello {
  return {
    type: "hello",
    state: daemon.state,
    windowFocused: vscode.window.state.focused,
    trusted: vscode.workspace.isTrusted,
    folders: (vscode.workspace.workspaceFolders ?? []).map(({ name, uri }) => ({
      name,
      uri: uri.toString(),
    })),
  };
}

/** A reloaded window is known by this, and has its session again. */
function clientId(memory: vscode.Memento): string {
  const known = memory.get<string>(CLIENT_ID);
  if (known !== undefined) return known;
  const made = randomUUID();
  void memory.update(CLIENT_ID, made);
  return made;
}
