// The card that asks whether something may be done. All it shows comes from the daemon's question, as plain text.

import { html, nothing } from "lit";
import type { PermissionOption, PermissionRequest } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine, plainText } from "../safe-text.js";
import { actsOf, isWeb, may } from "../surface.js";
import { answerPermission } from "../verbs.js";
import { shortPath } from "../words.js";
import { patch } from "./diff.js";
import { icon, type View } from "./parts.js";

const RISKS: Readonly<Record<string, string>> = { low: "Low risk", medium: "Medium risk", high: "High risk" };
const WIDER = new Set(["allowRun", "allowSession", "allowProject", "allowUser", "rejectAlways"]);

export function permission(panel: Panel, asked: PermissionRequest): View {
  const busy = panel.state.busy[asked.request] === true;
  const options = may(panel, "approver") ? asked.options : [];
  const once = options.filter((option) => !WIDER.has(option.kind));
  // A rule of the user's own settings is not made from a browser.
  const wider = options.filter(
    (option) => WIDER.has(option.kind) && !(option.kind === "allowUser" && isWeb(panel)),
  );
  const answer = (option: PermissionOption) =>
    answerPermission(panel, asked, option.id, noteOf(asked.request));
  return html`<div class="card asks risk-${asked.risk}" role="alertdialog" aria-label=${oneLine(asked.title)} data-request=${asked.request}>
    <div class="card-title">
      ${icon("shield")} <span class="grow">Tiller asks for permission</span>
      <span class="badge risk">${RISKS[asked.risk] ?? oneLine(asked.risk)}</span>
    </div>
    <div class="asked">${subject(panel, asked)}</div>
    ${asked.description ? html`<p class="dim why">${plainText(asked.description)}</p>` : nothing}
    ${may(panel, "approver") ? nothing : html`<p class="dim why">Answer it in the terminal or the editor: this page only reads.</p>`}
    ${
      once.length === 0
        ? nothing
        : html`<div class="answers">
      ${once.map(
        (option) =>
          html`<button
            type="button"
            class=${option.kind.startsWith("allow") ? "primary" : "secondary"}
            ?disabled=${busy}
            @click=${() => answer(option)}
          >
            ${oneLine(option.label)}
          </button>`,
      )}
    </div>`
    }
    ${
      wider.length > 0
        ? html`<div class="answers wider">
          ${wider.map((option) => html`<button type="button" class="link" ?disabled=${busy} @click=${() => answer(option)}>${oneLine(option.label)}</button>`)}
        </div>`
        : nothing
    }
    ${actsOf(
      panel,
      "approver",
      html`<label class="note"
        ><span class="unseen">Message to the agent</span>
        <input id=${noteId(asked.request)} type="text" maxlength="4000" placeholder="Reason or instruction (optional)" />
      </label>`,
    )}
    ${left(panel, asked.expires)}
  </div>`;
}

function noteId(request: string): string {
  return `note-${request}`;
}

function noteOf(request: string): string {
  const field = document.getElementById(noteId(request));
  return field instanceof HTMLInputElement ? field.value.trim() : "";
}

function left(panel: Panel, expires: string | undefined): View {
  if (expires === undefined || panel.state.nowMs === 0) return nothing;
  const leftS = Math.ceil((Date.parse(expires) - panel.state.nowMs) / 1000);
  if (leftS > 60 || leftS < 0) return nothing;
  return html`<div class="dim pad">Rejected automatically in ${leftS} s.</div>`;
}

function subject(panel: Panel, asked: PermissionRequest): View {
  const about = asked.subject;
  switch (about.type) {
    case "command": {
      const { command, cwd, sandbox } = about as Extract<typeof about, { type: "command" }>;
      return html`<div>Run this command${sandbox === "none" ? " outside the sandbox" : ""}:</div>
        <pre class="command" tabindex="0" role="region" aria-label="Command">${plainText(command)}</pre>
        <div class="dim">in ${oneLine(shortPath(cwd, []))}</div>`;
    }
    case "trust":
      return trust(panel, asked, about as Extract<typeof about, { type: "trust" }>);
    case "server":
      return server(panel, asked, about as Extract<typeof about, { type: "server" }>);
    default:
      return target(panel, asked, about as Target);
  }
}

type Trust = Extract<PermissionRequest["subject"], { type: "trust" }>;
type Server = Extract<PermissionRequest["subject"], { type: "server" }>;
interface Target {
  uri?: string;
  tool?: string;
  input?: unknown;
}

function trust(panel: Panel, asked: PermissionRequest, about: Trust): View {
  return html`<div>${oneLine(asked.title)}</div>
    <div><code>${oneLine(shortPath(about.folder, []))}</code></div>
    ${lists(about)} ${difference(panel, asked.request, about.difference)}`;
}

function server(panel: Panel, asked: PermissionRequest, about: Server): View {
  return html`<div>Use the tools of <strong>${oneLine(about.server)}</strong>?</div>
    <div class="dim">${oneLine(about.way)}</div>
    ${lists(about)} ${difference(panel, asked.request, about.difference)}`;
}

function difference(panel: Panel, request: string, text: string): View {
  return text ? html`<div class="file-diff">${patch(panel, request, text)}</div>` : nothing;
}

function target(panel: Panel, asked: PermissionRequest, { uri, tool, input }: Target): View {
  const roots = panel.state.session?.roots ?? [];
  return html`<div>${plainText(asked.title)}</div>
    ${uri ? html`<div><code>${oneLine(shortPath(uri, roots))}</code></div>` : nothing}
    ${tool ? html`<div class="dim">${oneLine(tool)}</div>` : nothing}
    ${input === undefined || input === null ? nothing : inputText(input)}`;
}

function inputText(input: unknown): View {
  const text = plainText(JSON.stringify(input, null, 2)).slice(0, 4000);
  return html`<pre class="command" tabindex="0" role="region" aria-label="Input">${text}</pre>`;
}

const LISTED = {
  added: "New",
  changed: "Changed",
  removed: "Gone",
  unasked: "Would run without asking",
} as const;

function lists(about: object): View {
  const found = about as Record<string, unknown>;
  return html`${Object.entries(LISTED).map(([name, words]) => {
    const names = found[name];
    if (!Array.isArray(names) || names.length === 0) return nothing;
    return html`<div><span class="dim">${words}:</span> ${oneLine(names.join(", "))}</div>`;
  })}`;
}
