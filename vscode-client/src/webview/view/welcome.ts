// What is there before anything was said: what to do next, down to signing in.

import { html, nothing } from "lit";
import type { Panel } from "../panel-context.js";
import { go } from "../verbs.js";
import { icon, spinner, type View } from "./parts.js";

const IDEAS = [
  ["Explain this project", "Explain what this project does and how it is laid out."],
  ["Find and fix a bug", "Run the tests. When one fails, find out why and repair it."],
  [
    "Write missing tests",
    "Look for code that no test covers, and write tests for the most important part of it.",
  ],
] as const;

export function welcome(panel: Panel): View {
  const session = panel.state.session;
  return html`<div class="welcome">
    <div class="logo" aria-hidden="true">${icon("compass")}</div>
    <h1>What shall we do?</h1>
    <p class="dim">
      Edits arrive in your editor, also in unsaved files. Each can be undone with one key, and kept or rejected piece by piece.
    </p>
    ${session?.config.model === null ? signIn(panel) : ideas(panel)}
    <p class="dim keys"><kbd>@</kbd> files <kbd>#</kbd> symbols <kbd>/</kbd> commands <kbd>!</kbd> shell</p>
  </div>`;
}

function ideas(panel: Panel): View {
  return html`<div class="ideas">
    ${IDEAS.map(
      ([name, words]) =>
        html`<button type="button" class="idea" @click=${() => panel.dispatch({ type: "compose", text: words, replace: true })}>
          ${icon("sparkle")} ${name}
        </button>`,
    )}
  </div>`;
}

/** Without a model nothing can be said: the first step is a provider. */
export function signIn(panel: Panel): View {
  return html`<div class="card">
    <div class="card-title">${icon("key")} Choose who thinks</div>
    <p>Sign in at a provider, or name a model that runs on your own machine. A key is asked for by the editor and kept by Tiller; this panel never sees it.</p>
    <div class="mark-acts">
      <button type="button" class="primary" @click=${() => panel.host.post({ type: "command", command: "tiller.signIn" })}>Sign in</button>
      <button type="button" class="secondary" @click=${() => go(panel, "models")}>Look at the models</button>
    </div>
  </div>`;
}

/** What is shown while the agent is not there. */
export function absent(panel: Panel): View {
  const { problem, doing } = panel.state.host;
  if (!problem) {
    return html`<div class="welcome starting" role="status">
      <div class="logo">${spinner()}</div>
      <p class="dim">${doing ?? "Starting…"}</p>
    </div>`;
  }
  const { action } = problem;
  return html`<div class="welcome" role="alert">
    <div class="logo bad" aria-hidden="true">${icon("debug-disconnect")}</div>
    <h1>Tiller cannot work yet</h1>
    <p>${problem.text}</p>
    <div class="mark-acts middle">
      ${
        action
          ? html`<button type="button" class="primary" @click=${() => panel.host.post({ type: "command", command: action.command })}>${action.title}</button>`
          : nothing
      }
      ${
        action?.command === "tiller.showLog"
          ? nothing
          : html`<button type="button" class="secondary" @click=${() => panel.host.post({ type: "command", command: "tiller.showLog" })}>Show the log</button>`
      }
    </div>
  </div>`;
}
