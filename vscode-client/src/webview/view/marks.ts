// What happened between the words: ends of runs, retries, compaction, notices, shell commands, answers.

import { html, nothing } from "lit";
import { unsafeHTML } from "lit/directives/unsafe-html.js";
import { markdownHtml } from "../markdown.js";
import type { Panel } from "../panel-context.js";
import { planOf, waits } from "../plan.js";
import type { AnsweredRow, EditRow, NoticeRow, RetryRow, RunEndRow, ShellRow, SummaryRow } from "../rows.js";
import { errorLine, oneLine, plainText, withoutCommands } from "../safe-text.js";
import { editorOnly } from "../surface.js";
import { compact, go, implement, retry } from "../verbs.js";
import { baseName, countText, durationText, plural } from "../words.js";
import { openTerminalButton } from "./open-terminal.js";
import { counts, icon, spinner, type View } from "./parts.js";
import { fold, isOpen } from "./row-context.js";

const ENDED: Readonly<Record<string, [string, string]>> = {
  completed: ["pass", "Done"],
  cancelled: ["stop-circle", "Stopped"],
  failed: ["error", "Failed"],
  interrupted: ["debug-disconnect", "Interrupted"],
  budget: ["credit-card", "Budget reached"],
  refused: ["circle-slash", "Refused"],
};

const WHY: Readonly<Record<string, string>> = {
  interrupted:
    "The server stopped during this run. The conversation and all changes up to that point are kept.",
};

export function runEnd(panel: Panel, row: RunEndRow): View {
  const [name, words] = ENDED[row.status] ?? ["info", row.status];
  const message = row.error?.message ?? WHY[row.status] ?? "The run ended before it was done.";
  const failed = row.error !== undefined || row.resumable;
  if (!failed || row.superseded || panel.readOnly)
    return html`${endLine(row, failed && row.error ? message : undefined)} ${planned(panel, row)}`;
  return html`<div class="mark error" role="group" aria-label="${words}">
    <div class="mark-head">${icon(name)} <strong>${words}</strong><span class="dim spent">${spentText(row)}</span></div>
    <div class="mark-words">${errorLine(message)}</div>
    ${row.error?.hint ? html`<div class="dim">${errorLine(row.error.hint)}</div>` : nothing}
    ${attempts(panel, row)}
    <div class="mark-acts">${whatToDo(panel, row.error?.kind, row.error?.provider, row.resumable ? row.run : undefined)}</div>
  </div>`;
}

/** Offers to carry out a plan, below the run that made it. */
function planned(panel: Panel, row: RunEndRow): View {
  const { session, trusted } = panel.state;
  const isNewest = session?.rows.at(-1)?.key === row.key;
  if (
    panel.readOnly ||
    !trusted ||
    !isNewest ||
    row.status !== "completed" ||
    session?.config.mode !== "plan"
  )
    return nothing;
  // A plan that was shown for approval has answers of its own.
  if (session.rows.some((one) => one.kind === "tool" && planOf(one) && waits(session.rows, one)))
    return nothing;
  return html`<div class="mark-acts">
    <button type="button" class="primary" @click=${() => implement(panel)}>${icon("play")} Implement the plan</button>
    <span class="dim">switches to Ask mode</span>
  </div>`;
}

function endLine(row: RunEndRow, message: string | undefined): View {
  const [name, words] = ENDED[row.status] ?? ["info", row.status];
  return html`<div class="run-end ${row.status}">
    ${icon(name)} <span>${message === undefined ? words : `${words}: ${errorLine(message)}`}</span>
    ${row.files > 0 ? html`<span class="dim">${plural(row.files, "file")}</span> ${counts(row.additions, row.deletions)}` : nothing}
    <span class="dim spent">${spentText(row)}</span>
  </div>`;
}

function spentText({ durationMs, steps, tokens, cost }: RunEndRow): string {
  return [
    durationMs === undefined ? "" : durationText(durationMs),
    steps ? plural(steps, "step") : "",
    tokens > 0 ? `${countText(tokens)} tokens` : "",
    cost ?? "",
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Shows how often the model was tried before the run failed; what each attempt said is folded. */
function attempts(panel: Panel, { key, attempts: errors }: RunEndRow): View {
  if (!errors || errors.length === 0) return nothing;
  const name = `attempts:${key}`;
  const open = isOpen(panel, name, { usually: false });
  const message = plural(errors.length, "earlier attempt");
  return html`<button type="button" class="fold" aria-expanded=${String(open)} @click=${() => fold(panel, name, !open)}>
      ${icon("chevron-right", `turn ${open ? "open" : ""}`)} <span>${message} failed</span>
    </button>
    ${open ? html`<ol class="attempts dim">${errors.map((one) => html`<li>${oneLine(one)}</li>`)}</ol>` : nothing}`;
}

/** Offers what helps against a failure of this kind. */
function whatToDo(
  panel: Panel,
  kind: string | undefined,
  provider: string | undefined,
  run: string | undefined,
): View {
  const command = (title: string, name: Parameters<typeof runCommand>[1], args?: string[]) =>
    editorOnly(
      panel,
      html`<button type="button" class="secondary" @click=${() => runCommand(panel, name, args)}>${title}</button>`,
    );
  const again = run
    ? html`<button type="button" class="primary" @click=${() => retry(panel, run)}>${icon("refresh")} Try again</button>`
    : nothing;
  switch (kind) {
    case "AuthRequired":
      return html`${editorOnly(
        panel,
        html`<button type="button" class="primary" @click=${() => runCommand(panel, "tiller.signIn", provider ? [provider] : [])}>
          ${icon("key")} Sign in
        </button>`,
      )}
        ${again === nothing ? nothing : html`<button type="button" class="secondary" @click=${() => retry(panel, run ?? "")}>Try again</button>`}
        <button type="button" class="secondary" @click=${() => go(panel, "models")}>Choose another model</button>`;
    case "ContextOverflow":
      return html`<button type="button" class="primary" @click=${() => compact(panel)}>Compact conversation</button> ${again}`;
    case "BudgetExceeded":
      return html`${command("Open the settings", "tiller.openSettings")} ${again}`;
    case "Internal":
      return html`${again} ${command("Show the log", "tiller.showLog")}`;
    default:
      return html`${again}
        <button type="button" class="secondary" @click=${() => go(panel, "models")}>Choose another model</button>`;
  }
}

function runCommand(
  panel: Panel,
  command: "tiller.signIn" | "tiller.openSettings" | "tiller.showLog",
  args: string[] = [],
): void {
  panel.host.post({ type: "command", command, args });
}

export function retrying(panel: Panel, row: RetryRow): View {
  const newest = oneLine(row.errors.at(-1) ?? "");
  if (row.outcome === "worked") {
    const count = row.errors.length > 1 ? ` (${plural(row.errors.length, "attempt")})` : "";
    return html`<div class="aside">${icon("refresh")} ${newest}${count}; trying again worked.</div>`;
  }
  const leftS = Math.max(0, Math.ceil((row.untilMs - panel.state.nowMs) / 1000));
  const when = row.outcome === "gaveUp" ? "" : leftS > 0 ? `next attempt in ${leftS} s` : "trying again";
  return html`<div class="mark warning">
    <div class="mark-head">
      ${row.outcome === "waiting" ? spinner() : icon("warning")}
      <strong>Attempt ${row.attempt} of ${row.maxAttempts} failed</strong> <span class="dim">${when}</span>
    </div>
    <div class="mark-words">${newest}</div>
  </div>`;
}

export function summary(panel: Panel, row: SummaryRow): View {
  if (row.going)
    return html`<div class="divider going">${spinner()} <span>Compacting the conversation…</span></div>`;
  if (row.error) return html`<div class="mark warning">${icon("warning")} ${oneLine(row.error)}</div>`;
  const open = isOpen(panel, row.key, { usually: false });
  const numbers =
    row.tokensBefore !== undefined && row.tokensAfter !== undefined
      ? `${countText(row.tokensBefore)} → ${countText(row.tokensAfter)} tokens`
      : "";
  return html`<div class="summary">
    <button type="button" class="divider" aria-expanded=${String(open)} @click=${() => fold(panel, row.key, !open)}>
      ${icon("fold")} <span>Compacted</span> <span class="dim">${numbers}</span> ${icon("chevron-right", `turn ${open ? "open" : ""}`)}
    </button>
    ${open ? html`<div class="summary-text prose">${unsafeHTML(markdownHtml(summaryText(row.text)))}</div>` : nothing}
  </div>`;
}

/** A summary without the lists of files that are for the model. */
function summaryText(text: string): string {
  return plainText(text)
    .replace(/<(read|modified)-files>[\s\S]*?<\/\1-files>/g, "")
    .trim();
}

const LEVELS = { info: "info", warning: "warning", error: "error" } as const;

export function notice(panel: Panel, row: NoticeRow): View {
  const text = plainText(withoutCommands(row.text));
  if (row.level === "info") return html`<div class="aside">${icon("info")} <span>${text}</span></div>`;
  return html`<div class="mark ${row.level}">
    <div class="mark-words">${icon(LEVELS[row.level])} ${text}</div>
    ${row.hint ? html`<div class="dim">${errorLine(row.hint)}</div>` : nothing}
    ${row.errorKind === "AuthRequired" ? html`<div class="mark-acts">${whatToDo(panel, row.errorKind, undefined, undefined)}</div>` : nothing}
  </div>`;
}

const EDITS: Readonly<Record<EditRow["what"], [string, string]>> = {
  proposed: ["git-pull-request-draft", "waits to be applied"],
  conflict: ["warning", "was not changed: its text had changed"],
  rejected: ["discard", "has a rejected change"],
  undone: ["discard", "was undone by you"],
};

const REFUSED = ["warning", "was not changed"] as const;

export function edit(panel: Panel, row: EditRow): View {
  const [name, usual] = EDITS[row.what];
  // The editor refused it during the run: nobody decided anything.
  if (row.what === "rejected" && row.run !== undefined) return editLine(panel, row, REFUSED);
  // An undone edit is an edit of the agent, unless it says what else was undone: a rejection, a restore.
  const why = row.what === "undone" ? row.documents[0]?.why : undefined;
  const words = why ? oneLine(why) : usual;
  return editLine(panel, row, [name, words]);
}

function editLine(panel: Panel, row: EditRow, [name, words]: readonly [string, string]): View {
  return html`<div class="aside ${row.what}">
    ${icon(name)}
    <span>
      ${[...new Set(row.documents.map((one) => one.uri))].map(
        (uri) =>
          html`<button type="button" class="link" @click=${() => panel.host.post({ type: "open", uri })}>${oneLine(baseName(uri))}</button> `,
      )}
      ${words}
    </span>
  </div>`;
}

export function shell(panel: Panel, row: ShellRow): View {
  const lines = plainText(row.output).replace(/\n$/, "").split("\n");
  const failed = row.ended && row.exitCode !== 0;
  return html`<div class="tool shell ${failed ? "bad" : ""}">
    <div class="tool-line">
      <div class="tool-head still">
        ${icon("terminal", "tool-icon")} <span class="tool-title"><code>${oneLine(row.command)}</code></span>
        <span class="badge">you</span>
        <span class="state">${row.ended ? (failed ? html`<span class="took">exit ${row.exitCode}</span>${icon("error")}` : icon("check")) : spinner()}</span>
      </div>
      ${openTerminalButton(panel, row.command)}
    </div>
    ${row.output ? html`<div class="tool-body"><pre class="output" tabindex="0" role="region" aria-label="Output">${lines.slice(-200).join("\n")}</pre></div>` : nothing}
  </div>`;
}

/** Who answered, where it was nobody at a keyboard. */
const BY: Readonly<Record<string, string>> = {
  timeout: "Rejected automatically, because nobody answered:",
  cancelled: "Cancelled with the run:",
  restart: "Cancelled, because the server restarted:",
};

export function answered(panel: Panel, row: AnsweredRow): View {
  const note = row.request === undefined ? undefined : panel.state.notes[row.request];
  const said = row.allowed ? `${oneLine(row.answer)}:` : (BY[row.by] ?? "You rejected:");
  const words =
    row.request === undefined ? `${oneLine(row.title)} — ${oneLine(row.answer)}` : oneLine(row.title);
  return html`<div class="aside ${row.allowed ? "allowed" : "refused"}">
    ${icon(row.allowed ? "pass" : "circle-slash")}
    <span>${row.request === undefined ? nothing : html`${said} `}<span class="dim">${words}</span>${note ? html` (“${oneLine(note)}”)` : nothing}</span>
  </div>`;
}
