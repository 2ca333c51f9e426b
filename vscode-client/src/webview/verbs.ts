// What a click or a key does: asks the server, and takes the answer into the state.

import type { Place } from "../shared/messages.js";
import { NO_KEY } from "../shared/no-key.js";
import type {
  CheckpointScope,
  ConfigChange,
  JsonValue,
  Mode,
  PermissionRequest,
  Question,
  QueueOp,
  Resolution,
  Rule,
} from "../shared/wire.js";
import { Refused } from "./host.js";
import type { Panel } from "./panel-context.js";
import type { Plan } from "./plan.js";
import type { SaidRow } from "./rows.js";
import type { Rewriting, Toast } from "./state.js";
import { isWeb } from "./surface.js";
import { plural } from "./words.js";

/** Runs what was asked for, marks it as going on meanwhile, and shows why it failed. */
export function attempt(panel: Panel, name: string, act: () => Promise<void>, about?: Toast["about"]): void {
  if (panel.state.busy[name]) return;
  panel.dispatch({ type: "busy", name, on: true });
  act()
    .catch((error: unknown) =>
      panel.dispatch({ type: "toast", level: "error", text: sentenceOf(error), ...(about && { about }) }),
    )
    .finally(() => panel.dispatch({ type: "busy", name, on: false }));
}

function sentenceOf(error: unknown): string {
  if (error instanceof Refused) return error.hint ? `${error.message} ${error.hint}` : error.message;
  return error instanceof Error ? error.message : String(error);
}

export function go(panel: Panel, place: Place): void {
  panel.dispatch({ type: "went", place: panel.state.place === place ? "transcript" : place });
}

export function configure(panel: Panel, set: ConfigChange): void {
  panel.dispatch({ type: "menu", name: undefined });
  attempt(panel, "configure", async () => {
    await panel.host.request("agent/session/configure", { set });
  });
}

/** Left to the editor's command, which asks where the user's own settings allow less. */
export function chooseMode(panel: Panel, mode: Mode): void {
  panel.dispatch({ type: "menu", name: undefined });
  panel.host.post({ type: "command", command: "tiller.chooseMode", args: [mode] });
}

/** Answers a plan, as edited where its document is open; only an approval leaves the Plan mode. */
export function answerPlan(panel: Panel, plan: Plan, answer: "approve" | "approveAuto" | "reject"): void {
  const { sha256 } = plan;
  attempt(panel, `plan:${sha256}`, async () => {
    const text = answer === "reject" ? undefined : await panel.host.editedPlan(sha256);
    const edited = text === undefined || text.trim() === plan.markdown ? {} : { text };
    await panel.host.request("agent/plan/respond", { sha256, answer, ...edited });
  });
}

/** Leaves the Plan mode and asks for what was planned. */
export function implement(panel: Panel): void {
  attempt(panel, "implement", async () => {
    await panel.host.request("agent/session/configure", { set: { mode: "ask" } });
    await panel.host.request("agent/prompt", { content: [{ type: "text", text: "Implement the plan." }] });
  });
}

export function stop(panel: Panel): void {
  attempt(panel, "stop", async () => {
    await panel.host.request("agent/run/cancel", { scope: "session", queue: "keep" });
  });
}

/** Stops one tool call; the run goes on. */
export function stopTool(panel: Panel, item: string): void {
  attempt(panel, `stop:${item}`, async () => {
    await panel.host.request("agent/run/cancel", { scope: "item", item });
  });
}

export function moveToBackground(panel: Panel, item: string): void {
  attempt(panel, `move:${item}`, async () => {
    await panel.host.request("agent/background/move", { item });
  });
}

export function stopBackground(panel: Panel, id: string): void {
  attempt(panel, `background:${id}`, async () => {
    await panel.host.request("agent/background/stop", { id });
  });
}

export function retry(panel: Panel, run: string): void {
  attempt(panel, "retry", async () => {
    await panel.host.request("agent/run/retry", { run });
  });
}

export function compact(panel: Panel, instructions = ""): void {
  attempt(panel, "compact", async () => {
    const result = await panel.host.request("agent/compact", instructions ? { instructions } : {});
    if (result.compaction === null && result.why) {
      panel.dispatch({ type: "toast", level: "info", text: result.why });
    }
  });
}

export function changeQueue(panel: Panel, ops: QueueOp[]): void {
  attempt(panel, "queue", async () => {
    const { queue } = await panel.host.request("agent/queue/update", { ops });
    panel.dispatch({ type: "queue", queue });
  });
}

export function answerPermission(panel: Panel, asked: PermissionRequest, option: string, note: string): void {
  attempt(panel, asked.request, async () => {
    const answer = { request: asked.request, option, ...(note && { note }) };
    const { status, by } = await panel.host.request("agent/permission/respond", answer);
    if (status === "recorded" && note) panel.dispatch({ type: "noted", request: asked.request, note });
    if (status !== "recorded") {
      const who = by ? ` by ${by}` : "";
      const text = status === "expired" ? "This request has expired." : `Already answered${who}.`;
      panel.dispatch({ type: "toast", level: "info", text });
    }
  });
}

export function answerQuestion(
  panel: Panel,
  asked: Question,
  answers: Record<string, JsonValue> | undefined,
): void {
  attempt(panel, asked.request, async () => {
    const answer = answers ? { answers } : { cancelled: true };
    await panel.host.request("agent/question/respond", { request: asked.request, ...answer });
  });
}

/** Asks for the hunks again, and once more where they changed meanwhile. Called after everything that may have changed them. */
export function refreshChanges(panel: Panel): void {
  const session = panel.state.session;
  if (!session || (session.changes.files === 0 && !session.changeSet)) return;
  const again = (on: boolean) => panel.dispatch({ type: "busy", name: "changesAgain", on });
  if (panel.state.busy["changes"]) {
    again(true);
    return;
  }
  attempt(panel, "changes", async () => {
    do {
      again(false);
      const changeSet = await panel.host.request("agent/changes/list", {});
      panel.dispatch({ type: "changeSet", session: session.session, changeSet });
    } while (panel.state.busy["changesAgain"]);
  });
}

export function resolve(panel: Panel, items: Resolution[]): void {
  const name = `resolve:${items.map((one) => one.hunk ?? one.file ?? one.changeSet).join(",")}`;
  attempt(panel, name, async () => {
    const { results } = await panel.host.request("agent/changes/resolve", { items });
    const conflicts = results.filter((one) => one.status === "conflict").length;
    if (conflicts > 0) {
      const decided = items.some((one) => one.action === "accept") ? "not kept" : "not rejected";
      const text = `${plural(conflicts, "change")} ${conflicts === 1 ? "was" : "were"} ${decided}: the lines were edited since, or decided in another window.`;
      panel.dispatch({ type: "toast", level: "warning", text });
    }
    refreshChanges(panel);
  });
}

/** Left to the editor's command, which asks first and names the files that it would delete. */
export function rejectAll(panel: Panel): void {
  panel.host.post({ type: "command", command: "tiller.rejectAll" });
}

export function loadOlder(panel: Panel): void {
  const session = panel.state.session;
  if (session?.older === undefined) return;
  const { older } = session;
  attempt(panel, "older", async () => {
    const asked = { session: session.session, before: older, limit: 200 };
    const page = await panel.host.request("agent/session/read", asked);
    panel.dispatch({ type: "older", session: session.session, items: page.items, older: page.prev });
  });
}

/** Reads the branch anew, after the conversation moved to another place of the tree. */
export function reread(panel: Panel): void {
  const session = panel.state.session;
  if (!session || session.run) return;
  attempt(panel, "reread", async () => {
    const page = await panel.host.request("agent/session/read", { limit: 200 });
    panel.dispatch({ type: "reread", session: session.session, items: page.items, older: page.prev });
  });
}

export function loadSessions(panel: Panel, query: string, cursor?: string): void {
  panel.dispatch({ type: "listed", lists: { sessionQuery: query } });
  attempt(panel, `sessions:${query}:${cursor ?? ""}`, async () => {
    const asked = {
      limit: 50,
      ...(isWeb(panel) && { scope: "all" }),
      ...(query && { query }),
      ...(cursor && { cursor }),
    };
    const page = await panel.host.request("agent/session/list", asked);
    if (panel.state.lists.sessionQuery !== query) return;
    const before = cursor ? (panel.state.lists.sessions ?? []) : [];
    panel.dispatch({
      type: "listed",
      lists: { sessions: [...before, ...page.sessions], sessionsNext: page.next },
    });
  });
}

/** Opens a stored session, or a new one with `"new"`; the extension then follows it. */
export function openSession(panel: Panel, session: string): void {
  attempt(panel, "open", async () => {
    await panel.host.request("agent/session/open", { session });
    panel.dispatch({ type: "went", place: "transcript" });
  });
}

export function deleteSession(panel: Panel, session: string): void {
  attempt(panel, `delete:${session}`, async () => {
    await panel.host.request("agent/session/delete", { session });
    loadSessions(panel, panel.state.lists.sessionQuery);
  });
}

export function rename(panel: Panel, title: string): void {
  attempt(panel, "rename", async () => {
    await panel.host.request("agent/session/rename", { title });
  });
}

export function loadTree(panel: Panel): void {
  attempt(panel, "tree", async () => {
    const { nodes, leaf } = await panel.host.request("agent/session/tree", {});
    panel.dispatch({ type: "listed", lists: { nodes, leaf } });
  });
}

export function navigate(panel: Panel, target: string, { summarize }: { summarize: boolean }): void {
  attempt(panel, "navigate", async () => {
    const moved = await panel.host.request("agent/session/navigate", { target, summarize });
    if (moved.cancelled) return;
    panel.dispatch({
      type: "compose",
      text: moved.editorText ?? "",
      replace: moved.editorText !== undefined,
    });
    reread(panel);
    loadTree(panel);
  });
}

export function fork(panel: Panel, atEntry: string | undefined): void {
  attempt(panel, "fork", async () => {
    const made = await panel.host.request("agent/session/fork", atEntry ? { atEntry } : {});
    await panel.host.request("agent/session/open", { session: made.session });
    panel.dispatch({ type: "compose", text: made.editorText ?? "", replace: made.editorText !== undefined });
  });
}

export function label(panel: Panel, entry: string, text: string): void {
  attempt(panel, `label:${entry}`, async () => {
    await panel.host.request("agent/session/label", { entry, label: text.trim() || null });
    loadTree(panel);
  });
}

export function loadCheckpoints(panel: Panel): void {
  attempt(panel, "checkpoints", async () => {
    const { checkpoints } = await panel.host.request("agent/checkpoint/list", {});
    panel.dispatch({ type: "listed", lists: { checkpoints } });
  });
}

export function preview(panel: Panel, checkpoint: string, scope: CheckpointScope): void {
  attempt(panel, "preview", async () => {
    const { files } = await panel.host.request("agent/checkpoint/preview", { checkpoint, scope });
    panel.dispatch({ type: "listed", lists: { preview: { checkpoint, scope, files } } });
  });
}

type OnConflict = "skip" | "merge" | "overwrite";

export function restore(
  panel: Panel,
  checkpoint: string,
  scope: CheckpointScope,
  onConflict: OnConflict,
): void {
  attempt(panel, "restore", async () => {
    const done = await panel.host.request("agent/checkpoint/restore", { checkpoint, scope, onConflict });
    const skipped = done.skipped.map((one) => `${one.uri.split("/").at(-1)}: ${one.why}`).join("; ");
    const text = skipped
      ? `Restored, but left alone: ${skipped}`
      : "Restored. Undo it with the newest checkpoint.";
    panel.dispatch({ type: "toast", level: skipped ? "warning" : "info", text });
    panel.dispatch({ type: "listed", lists: { preview: undefined } });
    if (done.editorText !== undefined)
      panel.dispatch({ type: "compose", text: done.editorText, replace: true });
    if (scope !== "files") reread(panel);
    refreshChanges(panel);
    loadCheckpoints(panel);
  });
}

/** Puts an earlier message into the composer; what came after it goes only when the new one is sent. */
export function rewrite(panel: Panel, row: SaidRow): void {
  if (row.entry === undefined) return;
  const checkpoint = checkpointOf(panel, row);
  const rewriting = { entry: row.entry, checkpoint, files: false };
  const { text, blocks } = row;
  panel.dispatch({ type: "composer", action: { type: "rewriting", rewriting, text, blocks } });
}

/** Gives the checkpoint before the run that a message began; undefined: that run changed no file. */
export function checkpointOf(panel: Panel, row: SaidRow): string | undefined {
  // What steered a run came after some of its changes.
  if (row.run === undefined || row.delivery === "steer" || row.delivery === "followUp") return undefined;
  return panel.state.lists.checkpoints?.find((one) => one.run === row.run)?.checkpoint;
}

/** Goes to the checkpoint before a message, and shows what restoring it would do. */
export function showCheckpoint(panel: Panel, checkpoint: string): void {
  panel.dispatch({ type: "went", place: "checkpoints" });
  preview(panel, checkpoint, "files");
}

/** Takes the conversation, and where asked the files, back to before a message. Throws when that is refused. */
export async function goBefore(panel: Panel, { entry, checkpoint, files }: Rewriting): Promise<void> {
  if (files && checkpoint !== undefined) {
    const asked = { checkpoint, scope: "both", onConflict: "skip" };
    const { skipped } = await panel.host.request("agent/checkpoint/restore", asked);
    const names = skipped.map((one) => one.uri.split("/").at(-1)).join(", ");
    const text = `Not restored, because you or another program changed them since: ${names}`;
    if (names) panel.dispatch({ type: "toast", level: "warning", text });
    refreshChanges(panel);
    return;
  }
  const moved = await panel.host.request("agent/session/navigate", { target: entry, summarize: false });
  if (moved.cancelled) throw new Error("An extension kept the conversation where it is; nothing was sent.");
}

export function loadRules(panel: Panel): void {
  attempt(panel, "rules", async () => {
    const { rules } = await panel.host.request("agent/permission/rules", { op: "list" });
    panel.dispatch({ type: "listed", lists: { rules } });
  });
}

export function loadCosts(panel: Panel): void {
  attempt(panel, "costs", async () => {
    const costs = await panel.host.request("agent/costs", { by: "day" });
    panel.dispatch({ type: "listed", lists: { costs } });
  });
}

export function removeRule(panel: Panel, rule: Rule): void {
  attempt(panel, `rule:${rule.id}`, async () => {
    const { rules } = await panel.host.request("agent/permission/rules", { op: "remove", rule });
    panel.dispatch({ type: "listed", lists: { rules } });
  });
}

/** Asks the extension that said something how it is to be shown; without an answer it stays words. */
export function renderCustom(panel: Panel, key: string, entry: string): void {
  if (isWeb(panel)) return;
  attempt(panel, `render:${entry}`, async () => {
    const { view } = await panel.host.request("agent/extension/render", { entry });
    if (view) panel.dispatch({ type: "rendered", key, view });
  });
}

export function loadModels(panel: Panel): void {
  attempt(panel, "models", async () => {
    const { models } = await panel.host.request("agent/model/list", { scope: "all" });
    panel.dispatch({ type: "listed", lists: { models } });
  });
  // A browser is not told of keys: a model that can be used is one of the list.
  if (isWeb(panel)) {
    panel.dispatch({ type: "listed", lists: { keyless: new Map() } });
    return;
  }
  attempt(panel, "keys", async () => {
    const { providers } = await panel.host.request("agent/auth/status", {});
    const keyless = new Map(
      providers.filter((one) => one.source === NO_KEY).map((one) => [one.provider, one.name ?? one.provider]),
    );
    panel.dispatch({ type: "listed", lists: { keyless } });
  });
}

export function loadCommands(panel: Panel): void {
  attempt(panel, "commands", async () => {
    const { commands } = await panel.host.request("agent/command/list", {});
    panel.dispatch({ type: "listed", lists: { commands } });
  });
}
