// A tool call as a card: what it is, how it stands, its arguments while they stream, its output while it runs.

import { html, nothing } from "lit";
import { unsafeHTML } from "lit/directives/unsafe-html.js";
import type { JsonValue } from "../../shared/wire.js";
import { groupText, pathOf } from "../grouping.js";
import { openPath } from "../links.js";
import { markdownHtml } from "../markdown.js";
import type { Panel } from "../panel-context.js";
import { type Plan, planOf, waits } from "../plan.js";
import type { GroupRow, ToolRow } from "../rows.js";
import { oneLine, plainText } from "../safe-text.js";
import { isBusy } from "../state.js";
import { editorOnly, isWeb, may } from "../surface.js";
import { todoSteps } from "../todo.js";
import { answerPlan, moveToBackground, stopTool } from "../verbs.js";
import { durationText, elapsedText } from "../words.js";
import { fileDiff, growingDiff, patch } from "./diff.js";
import { fieldsOf, body as viewBody } from "./extensions.js";
import { openTerminalButton } from "./open-terminal.js";
import { field, output } from "./output.js";
import { counts, icon, iconButton, spinner, type View } from "./parts.js";
import { type FileHunks, fold, hunksOf, isOpen } from "./row-context.js";
import { stepList } from "./steps.js";
import { taskCard } from "./task-card.js";

const ICONS: Readonly<Record<string, string>> = {
  bash: "terminal",
  read: "eye",
  write: "new-file",
  edit: "edit",
  grep: "search",
  web_search: "search",
  find: "search",
  ls: "list-tree",
  fetch: "globe",
  diagnostics: "warning",
  todo: "checklist",
  plan: "checklist",
  task_list: "robot",
  task_result: "robot",
  task_stop: "robot",
  ask: "comment-discussion",
};

/** Calls whose arguments people see in a place of their own: the list of steps, the question. */
const SHOWN_ELSEWHERE: ReadonlySet<string> = new Set(["todo", "ask"]);

/** A call that runs longer shows for how long. */
const SLOW_MS = 2000;

export function tool(panel: Panel, row: ToolRow): View {
  if (row.name === "task") return taskCard(panel, row);
  const changed = hunksOf(panel.state.session?.changeSet, row.call);
  const edits = row.name === "edit" || row.name === "write";
  const shown = edits || row.status === "error" || row.name === "plan";
  const usually = row.phase === "ended" ? shown : !SHOWN_ELSEWHERE.has(row.name);
  const open = isOpen(panel, row.key, { usually });
  const bad = row.status === "error" || row.status === "blocked" ? "bad" : "";
  return html`<div class="tool ${row.phase} ${bad}">
    <div class="tool-line">
      <button type="button" class="tool-head" aria-expanded=${String(open)} @click=${() => fold(panel, row.key, !open)}>
        ${icon(ICONS[row.name] ?? "tools", "tool-icon")}
        <span class="tool-title">${title(row)}</span>
        ${edits ? changeCounts(row) : nothing} ${state(panel, row)} ${icon("chevron-right", `turn ${open ? "open" : ""}`)}
      </button>
      ${lineAct(panel, row)}
    </div>
    ${open ? html`<div class="tool-body">${body(panel, row, changed)}</div>` : nothing}
  </div>`;
}

/** What one click on the line does besides unfolding it: stop what runs, open the file or a terminal for the command. */
function lineAct(panel: Panel, row: ToolRow): View {
  if (row.phase === "running" && (panel.isTask || !may(panel, "approver"))) return nothing;
  if (row.phase === "running") {
    const stop = iconButton({
      icon: "debug-stop",
      title: `Stop ${row.name}`,
      act: () => stopTool(panel, row.key),
    });
    if (row.name !== "bash" || panel.readOnly) return stop;
    const move = () => moveToBackground(panel, row.key);
    return html`${iconButton({ icon: "server-process", title: "Move to the background", act: move })} ${stop}`;
  }
  if (row.name === "bash") return openTerminalButton(panel, field(row.input, "command"));
  const path = OPENED.has(row.name) ? pathOf(row) : undefined;
  if (path === undefined) return nothing;
  const offset = field(row.input, "offset");
  const line0 = typeof offset === "number" && offset > 0 ? offset - 1 : 0;
  return iconButton({
    icon: "go-to-file",
    title: `Open ${oneLine(path)}`,
    act: () => openPath(panel, { path, line0 }),
  });
}

const OPENED: ReadonlySet<string> = new Set(["read", "write", "edit"]);

/** Shows a run of lookups as one line, which unfolds into its calls. */
export function group(panel: Panel, row: GroupRow): View {
  const open = isOpen(panel, row.key, { usually: false });
  return html`<button type="button" class="fold group" aria-expanded=${String(open)} @click=${() => fold(panel, row.key, !open)}>
    ${icon("chevron-right", `turn ${open ? "open" : ""}`)} <span class="clip">${groupText(row.calls)}</span>
  </button>`;
}

function title(row: ToolRow): View {
  const text = oneLine(row.title).slice(0, 400);
  if (text.startsWith("$ ")) return html`<code>${text.slice(2)}</code>`;
  const [verb, ...rest] = text.split(" ");
  return html`<span class="verb">${verb}</span> ${rest.length > 0 ? html`<span class="about">${rest.join(" ")}</span>` : nothing}`;
}

function changeCounts(row: ToolRow): View {
  const added = field(row.details, "additions");
  const gone = field(row.details, "deletions");
  return typeof added === "number" && typeof gone === "number" ? counts(added, gone) : nothing;
}

function state(panel: Panel, row: ToolRow): View {
  if (row.phase === "asked")
    return html`<span class="state">${spinner()}<span class="unseen">being asked</span></span>`;
  if (row.phase === "running")
    return html`<span class="state"><span class="took">${ranText(panel, row)}</span>${spinner()}<span class="unseen">running</span></span>`;
  const [name, words] = ENDS[row.status ?? "ok"] ?? ["question", row.status ?? ""];
  const took = row.durationMs !== undefined && row.durationMs >= 1000 ? durationText(row.durationMs) : "";
  const code = field(row.details, "exit_code");
  const exit = typeof code === "number" && code !== 0 ? `exit ${code}` : "";
  return html`<span class="state ${row.status}"
    ><span class="took">${[exit, took].filter(Boolean).join(" · ")}</span>${icon(name)}<span class="unseen">${words}</span></span
  >`;
}

function ranText(panel: Panel, { startedAt }: ToolRow): string {
  const sinceMs = startedAt === undefined ? Number.NaN : Date.parse(startedAt);
  const { nowMs } = panel.state;
  return nowMs - sinceMs >= SLOW_MS ? elapsedText(sinceMs, nowMs) : "";
}

const ENDS: Readonly<Record<string, [string, string]>> = {
  ok: ["check", "done"],
  error: ["error", "failed"],
  skipped: ["debug-step-over", "skipped"],
  blocked: ["circle-slash", "not allowed"],
  cancelled: ["stop-circle", "stopped"],
};

function body(panel: Panel, row: ToolRow, changed: FileHunks[]): View {
  const steps = todoSteps(row.details);
  if (steps.length > 0) return stepList(steps);
  const plan = planOf(row);
  if (plan) return planBody(panel, row, plan);
  if (SHOWN_ELSEWHERE.has(row.name)) return output(panel, row);
  if (row.phase === "asked") return asked(row);
  if (changed.length > 0)
    return html`${changed.map((one) => fileDiff(panel, one, { counted: false }))} ${failure(panel, row)}`;
  const made = field(row.details, "patch");
  if (typeof made === "string" && made)
    return html`<div class="file-diff">${patch(panel, row.key, made)}</div>`;
  const drawn = field(row.details, "view");
  const asDrawn = field(row.details, "call_view");
  const sent = asDrawn === undefined ? input(row) : viewBody(fieldsOf(asDrawn));
  const came = drawn === undefined || row.status !== "ok" ? output(panel, row) : viewBody(fieldsOf(drawn));
  return html`${sent} ${came} ${changedFiles(panel, row)}`;
}

/** Shows a plan, and the ways to answer it while it waits. */
function planBody(panel: Panel, row: ToolRow, plan: Plan): View {
  const prose = html`<div class="prose">${unsafeHTML(markdownHtml(plan.markdown))}</div>`;
  const { session } = panel.state;
  const mayAnswer =
    !panel.readOnly && panel.state.trusted && session?.config.mode === "plan" && !isBusy(session);
  if (!session || !mayAnswer || !waits(session.rows, row)) return html`<div class="plan-body">${prose}</div>`;
  const answer = (how: "approve" | "approveAuto" | "reject") => () => answerPlan(panel, plan, how);
  return html`<div class="plan-body">${prose}
    <div class="mark-acts" role="group" aria-label="Answer the plan">
      <button type="button" class="primary" @click=${answer("approve")}>${icon("play")} Carry it out</button>
      <button type="button" class="secondary" @click=${answer("approveAuto")} title="Carries it out in Auto mode">In Auto mode</button>
      ${editorOnly(panel, html`<button type="button" class="secondary" @click=${() => panel.host.post({ type: "editPlan", ...plan })}>Edit</button>`)}
      <button type="button" class="secondary" @click=${answer("reject")}>Reject</button>
      <span class="dim">or write below what is to be different</span>
    </div>
  </div>`;
}

/** Arguments while they grow, and until the call runs: the new text of a file, else as those of a call that runs. */
function asked(row: ToolRow): View {
  const { partial } = row;
  if (row.name === "write") return growingDiff([{ newText: partial?.["content"] }]);
  if (row.name !== "edit") return input({ ...row, input: partial }, { always: true });
  const edits = partial?.["edits"];
  return growingDiff(
    (Array.isArray(edits) ? edits : []).map((edit) => ({
      oldText: field(edit, "oldText"),
      newText: field(edit, "newText"),
    })),
  );
}

function input(row: ToolRow, { always = false } = {}): View {
  const given = row.input;
  if (given === null || given === undefined || typeof given !== "object" || Array.isArray(given))
    return nothing;
  const command = given["command"];
  if (row.name === "bash" && typeof command === "string") {
    const long = always || command.length > 60 || command.includes("\n");
    return long ? html`<pre class="command">${plainText(command)}</pre>` : nothing;
  }
  const shown = Object.entries(given).filter(
    ([name]) => name !== "path" && name !== "content" && name !== "edits",
  );
  if (shown.length === 0) return nothing;
  // What grows is looked at where it grows.
  const cut = (text: string) => (row.phase === "asked" ? text.slice(-400) : text.slice(0, 400));
  return html`<dl class="input">
    ${shown.map(([name, value]) => html`<dt>${oneLine(name)}</dt><dd>${cut(oneLine(wordsOf(value)))}</dd>`)}
  </dl>`;
}

function wordsOf(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function failure(panel: Panel, row: ToolRow): View {
  return row.status === "ok" || row.status === undefined ? nothing : output(panel, row);
}

function changedFiles(panel: Panel, row: ToolRow): View {
  const files = field(row.details, "changed_files");
  if (!Array.isArray(files) || files.length === 0) return nothing;
  const count = field(row.details, "changed_count");
  const shown = files.slice(0, 5).map(String);
  const rest = typeof count === "number" && count > shown.length ? ` and ${count - shown.length} more` : "";
  return html`<div class="dim pad">Changed ${shown.map((path, at) => html`${at > 0 ? ", " : ""}${changedFile(panel, path)}`)}${rest}</div>`;
}

function changedFile(panel: Panel, path: string): View {
  const name = oneLine(path.split("/").at(-1) ?? path);
  if (isWeb(panel)) return html`${name}`;
  return html`<button type="button" class="link" title="Open ${oneLine(path)}" @click=${() => openPath(panel, { path, line0: 0 })}>${name}</button>`;
}
