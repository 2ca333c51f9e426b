// What happened between the words: ends of runs, retries, compaction, notices, shell commands, answers.

import { html, nothing } from "lit";
import type { Panel } from "../panel-context.js";
import type { AnsweredRow, EditRow, NoticeRow, RetryRow, RunEndRow, ShellRow, SummaryRow } from "../rows.js";
import { oneLine, plainText } from "../safe-text.js";
import { compact, go, retry } from "../verbs.js";
import { baseName, countText, plural } from "../words.js";
import { counts, icon, spinner, type View } from "./parts.js";
import { fold, isOpen } from "./row-context.js";

const ENDED: Readonly<Record<string, [string, string]>> = {
  completed: ["pass", "Done"],
  cancelled: ["stop-circle", "Stopped"],
  failed: ["error", "Failed"],
  interrupted: ["debug-disconnect", "Interrupted"],
  budget: ["credit-card", "The budget is used up"],
  refused: ["circle-slash", "Refused"],
};

const WHY: Readonly<Record<string, string>> = {
  interrupted: "The server ended while this ran. What was said and done until then is kept.",
};

export function runEnd(panel: Panel, row: RunEndRow): View {
  const [name, words] = ENDED[row.status] ?? ["info", row.status];
  const spent = [row.tokens > 0 ? `${countText(row.tokens)} tokens` : "", row.cost ?? ""]
    .filter(Boolean)
    .join(" · ");
  const line = html`<div class="run-end ${row.status}">
    ${icon(name)} <span>${words}</span>
    ${row.files > 0 ? html`<span class="dim">${plural(row.files, "file")}</span> ${counts(row.additions, row.deletions)}` : nothing}
    <span class="dim spent">${spent}</span>
  </div>`;
  if (!row.error && !row.resumable) return line;
  const message = row.error?.message ?? WHY[row.status] ?? "The run ended before it was done.";
  return html`<div class="mark error" role="group" aria-label="${words}">
    <div class="mark-head">${icon(name)} <strong>${words}</strong><span class="dim spent">${spent}</span></div>
    <div class="mark-words">${oneLine(message)}</div>
    ${row.error?.hint ? html`<div class="dim">${oneLine(row.error.hint)}</div>` : nothing}
    <div class="mark-acts">${whatToDo(panel, row.error?.kind, row.error?.provider, row.resumable ? row.run : undefined)}</div>
  </div>`;
}

/** Offers what helps against a failure of this kind. */
function whatToDo(
  panel: Panel,
  kind: string | undefined,
  provider: string | undefined,
  run: string | undefined,
): View {
  const command = (title: string, name: Parameters<typeof runCommand>[1], args?: string[]) =>
    html`<button type="button" class="secondary" @click=${() => runCommand(panel, name, args)}>${title}</button>`;
  const again = run
    ? html`<button type="button" class="primary" @click=${() => retry(panel, run)}>${icon("refresh")} Try again</button>`
    : nothing;
  switch (kind) {
    case "AuthRequired":
      return html`<button type="button" class="primary" @click=${() => runCommand(panel, "tiller.signIn", provider ? [provider] : [])}>
          ${icon("key")} Sign in
        </button>
        ${again === nothing ? nothing : html`<button type="button" class="secondary" @click=${() => retry(panel, run ?? "")}>Try again</button>`}
        <button type="button" class="secondary" @click=${() => go(panel, "models")}>Choose another model</button>`;
    case "ContextOverflow":
      return html`<button type="button" class="primary" @click=${() => compact(panel)}>Sum up and make room</button> ${again}`;
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
  if (row.outcome === "worked") {
    return html`<div class="aside">${icon("refresh")} ${oneLine(row.error)}; the next try worked.</div>`;
  }
  const leftS = Math.max(0, Math.ceil((row.untilMs - panel.state.nowMs) / 1000));
  const when = row.outcome === "gaveUp" ? "given up" : leftS > 0 ? `next try in ${leftS} s` : "trying again";
  return html`<div class="mark warning">
    <div class="mark-head">
      ${row.outcome === "waiting" ? spinner() : icon("warning")}
      <strong>Try ${row.attempt} of ${row.maxAttempts}</strong> <span class="dim">${when}</span>
    </div>
    <div class="mark-words">${oneLine(row.error)}</div>
  </div>`;
}

export function summary(panel: Panel, row: SummaryRow): View {
  if (row.going)
    return html`<div class="divider going">${spinner()} <span>Summing up the conversation…</span></div>`;
  if (row.error) return html`<div class="mark warning">${icon("warning")} ${oneLine(row.error)}</div>`;
  const open = isOpen(panel, row.key, { usually: false });
  const numbers =
    row.tokensBefore !== undefined && row.tokensAfter !== undefined
      ? `${countText(row.tokensBefore)} → ${countText(row.tokensAfter)} tokens`
      : "";
  return html`<div class="summary">
    <button type="button" class="divider" aria-expanded=${String(open)} @click=${() => fold(panel, row.key, !open)}>
      ${icon("fold")} <span>Summed up</span> <span class="dim">${numbers}</span> ${icon("chevron-right", `turn ${open ? "open" : ""}`)}
    </button>
    ${open ? html`<div class="summary-text">${plainText(row.text)}</div>` : nothing}
  </div>`;
}

const LEVELS = { info: "info", warning: "warning", error: "error" } as const;

export function notice(panel: Panel, row: NoticeRow): View {
  const text = plainText(row.text);
  if (row.level === "info") return html`<div class="aside">${icon("info")} <span>${text}</span></div>`;
  return html`<div class="mark ${row.level}">
    <div class="mark-words">${icon(LEVELS[row.level])} ${text}</div>
    ${row.hint ? html`<div class="dim">${oneLine(row.hint)}</div>` : nothing}
    ${row.errorKind === "AuthRequired" ? html`<div class="mark-acts">${whatToDo(panel, row.errorKind, undefined, undefined)}</div>` : nothing}
  </div>`;
}

const EDITS: Readonly<Record<EditRow["what"], [string, string]>> = {
  proposed: ["git-pull-request-draft", "waits to be applied"],
  conflict: ["warning", "was not changed: its text had changed"],
  rejected: ["discard", "a change was rejected; the agent is told"],
  undone: ["discard", "undone by you; the agent is told"],
};

const REFUSED = ["warning", "was not changed"] as const;

export function edit(panel: Panel, row: EditRow): View {
  const [name, usual] = EDITS[row.what];
  // The editor refused it during the run: nobody decided anything.
  if (row.what === "rejected" && row.run !== undefined) return editLine(panel, row, REFUSED);
  // An undone edit is an edit of the agent, unless it says what else was undone: a rejection, a restore.
  const why = row.what === "undone" ? row.documents[0]?.why : undefined;
  const words = why ? `${oneLine(why)}; the agent is told` : usual;
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

export function shell(_panel: Panel, row: ShellRow): View {
  const lines = plainText(row.output).replace(/\n$/, "").split("\n");
  const failed = row.ended && row.exitCode !== 0;
  return html`<div class="tool shell ${failed ? "bad" : ""}">
    <div class="tool-head still">
      ${icon("terminal", "tool-icon")} <span class="tool-title"><code>${oneLine(row.command)}</code></span>
      <span class="badge">you</span>
      <span class="state">${row.ended ? (failed ? html`<span class="took">exit ${row.exitCode}</span>${icon("error")}` : icon("check")) : spinner()}</span>
    </div>
    ${row.output ? html`<div class="tool-body"><pre class="output" tabindex="0" role="region" aria-label="Output">${lines.slice(-200).join("\n")}</pre></div>` : nothing}
  </div>`;
}

export function answered(_panel: Panel, row: AnsweredRow): View {
  return html`<div class="aside ${row.allowed ? "allowed" : "refused"}">
    ${icon(row.allowed ? "pass" : "circle-slash")}
    <span><span class="dim">${oneLine(row.title)}</span> — ${oneLine(row.answer)}</span>
  </div>`;
}
