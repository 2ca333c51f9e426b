// What a review found: one card for each finding, with the way to its place and its remedy.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { unsafeHTML } from "lit/directives/unsafe-html.js";
import type { Finding } from "../../shared/wire.js";
import { markdownHtml } from "../markdown.js";
import type { Panel } from "../panel-context.js";
import { oneLine, plainText } from "../safe-text.js";
import { baseName, linesText, plural, shortPath } from "../words.js";
import { placeHead } from "./header.js";
import { icon, iconButton, spinner, type View } from "./parts.js";

const FINDINGS_SHOWN = 200;
/** By the severity of LSP: icon, class and word. */
const SEVERITIES: Readonly<Record<number, [string, string]>> = {
  1: ["error", "Error"],
  2: ["warning", "Warning"],
  3: ["info", "Information"],
  4: ["lightbulb", "Hint"],
};

export function review(panel: Panel): View {
  const { review: now } = panel.state;
  const again = () => panel.host.post({ type: "command", command: "tiller.review" });
  if (!now) {
    return html`${placeHead(panel, "Review")}
      <div class="empty dim">No review yet.</div>
      <div class="answers pad"><button type="button" class="primary" @click=${again}>Review changes…</button></div>`;
  }
  const findings = now.result?.findings ?? [];
  const what = now.base ? `Changes since ${oneLine(now.base)}` : "Uncommitted changes";
  return html`${placeHead(panel, "Review", iconButton({ icon: "refresh", title: "Review again…", act: again, disabled: now.doing !== undefined }))}
    <div class="place-list review" role="region" aria-label="Review">
      <div class="pad dim">${what}</div>
      ${now.doing === undefined ? nothing : going(panel, now.doing)}
      ${now.problem ? html`<div class="mark error" role="alert"><div class="mark-words">${icon("error")} ${plainText(now.problem)}</div></div>` : nothing}
      ${now.result ? outcome(now.result, findings.length) : nothing}
      <div role="list" aria-label="Findings">
        ${repeat(
          findings.slice(0, FINDINGS_SHOWN),
          (one, index) => `${index}:${one.uri}`,
          (one) => card(panel, one),
        )}
      </div>
      ${findings.length > FINDINGS_SHOWN ? html`<div class="empty dim">And ${findings.length - FINDINGS_SHOWN} more; the editor's list of problems has all.</div>` : nothing}
    </div>`;
}

function going(panel: Panel, doing: string): View {
  return html`<div class="mark" role="status">
    <div class="mark-head">${spinner()} <span class="grow clip">${doingText(doing)}</span>
      <button type="button" class="secondary" @click=${() => panel.host.post({ type: "command", command: "tiller.stopReview" })}>Stop</button>
    </div>
  </div>`;
}

/** The line of a review; one that is a single part need not be counted. */
function doingText(doing: string): string {
  const part = /^part (\d+) of (\d+)$/.exec(doing);
  if (!part) return oneLine(doing);
  return part[2] === "1" ? "Reviewing…" : `Reviewing part ${part[1]} of ${part[2]}…`;
}

type Result = NonNullable<NonNullable<Panel["state"]["review"]>["result"]>;

function outcome(result: Result, count: number): View {
  const found = count === 0 ? "No findings." : `${plural(count, "finding")}.`;
  const whole = result.status === "completed";
  return html`<div class="pad" role="status">
    <strong>${found}</strong>
    ${whole ? nothing : html`<div>${icon("warning")} The review is incomplete: ${oneLine(result.error?.message ?? result.status)}</div>`}
    ${result.message ? html`<div class="review-words prose">${unsafeHTML(markdownHtml(plainText(result.message)))}</div>` : nothing}
  </div>`;
}

function card(panel: Panel, { uri, diagnostic }: Finding): View {
  const { range, message, severity, code } = diagnostic;
  const [picture, word] = SEVERITIES[severity ?? 1] ?? ["error", "Error"];
  const cut = message.indexOf("\n");
  const title = oneLine(cut < 0 ? message : message.slice(0, cut));
  const more = cut < 0 ? "" : message.slice(cut + 1).trim();
  const place = shortPath(uri, panel.state.folders);
  return html`<article class="finding ${word.toLowerCase()}" role="listitem" aria-label="${word}: ${title}">
    <div class="finding-head">${icon(picture)} <strong class="grow">${title}</strong></div>
    ${more ? html`<div class="review-words prose">${unsafeHTML(markdownHtml(plainText(more)))}</div>` : nothing}
    <div class="finding-foot">
      <button type="button" class="link" title="Open ${place}" @click=${() => panel.host.post({ type: "open", uri, range })}>${oneLine(baseName(uri))}:${linesText(range)}</button>
      <span class="dim grow">${code === undefined ? "" : oneLine(String(code))}</span>
      ${isMarked(diagnostic.data, "applied") ? html`<span class="dim">${icon("check")} Applied</span>` : nothing}
      ${isMarked(diagnostic.data, "suggestion") ? html`<button type="button" class="secondary" @click=${() => apply(panel, { uri, diagnostic })}>Apply suggestion</button>` : nothing}
    </div>
  </article>`;
}

function isMarked(data: Finding["diagnostic"]["data"], mark: "applied" | "suggestion"): boolean {
  return typeof data === "object" && data !== null && !Array.isArray(data) && data[mark] === true;
}

function apply(panel: Panel, { uri, diagnostic }: Finding): void {
  const { range, message } = diagnostic;
  const { start, end } = range;
  const plain = { start: { ...start }, end: { ...end } };
  panel.host.post({ type: "command", command: "tiller.applySuggestion", args: [uri, plain, message] });
}
