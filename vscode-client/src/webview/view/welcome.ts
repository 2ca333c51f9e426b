// What is shown before the first prompt: what to do next, and where there is no model, which to choose.

import { html, nothing } from "lit";
import type { ModelEntry } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import { editorOnly, isWeb } from "../surface.js";
import { configure, go, loadModels } from "../verbs.js";
import { icon, spinner, type View } from "./parts.js";

const IDEAS = [
  ["Explain this project", "Explain what this project does and how it is laid out."],
  ["Find and fix a bug", "Run the tests. When one fails, find out why and repair it."],
  [
    "Write missing tests",
    "Look for code that no test covers, and write tests for the most important part of it.",
  ],
] as const;
const OFFERS_MAX = 4;
const EMBEDDED = "embedded";
const EMBEDDED_OFFER =
  "Repair needs no key: it is a rule-based program, not a language model, and repairs simple failures of Python tests.";
const NONE_ANSWERS =
  "No model server answers on this machine. Start Ollama, LM Studio, llama.cpp or vLLM and look again, or sign in to a provider.";

export function welcome(panel: Panel): View {
  const session = panel.state.session;
  if (panel.readOnly) return html`<div class="empty dim grow">Nothing was said in it yet.</div>`;
  return html`<div class="welcome">
    <div class="logo" aria-hidden="true">${icon("compass")}</div>
    <h1>What do you want to build or fix?</h1>
    <p class="dim">
      ${
        isWeb(panel)
          ? "Each change can be kept or rejected piece by piece, and undone."
          : "Edits arrive in your editor, also in unsaved files. Each can be undone with one key, and kept or rejected piece by piece."
      }
    </p>
    ${session?.config.model === null ? chooseModel(panel) : ideas(panel)}
    <p class="dim keys">${editorOnly(panel, html`${key("@", "files")} ${key("#", "symbols")} `)}${key("/", "commands")}${editorOnly(panel, html` ${key("!", "shell")}`)}</p>
  </div>`;
}

function key(sign: string, words: string): View {
  return html`<span class="key"><kbd>${sign}</kbd> ${words}</span>`;
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

/** Without a model no prompt can be sent: the first step is a model of this machine, or a provider. */
export function chooseModel(panel: Panel): View {
  const { models, keyless } = panel.state.lists;
  const local = (models ?? []).filter((one) => one.auth === "ok" && keyless?.has(one.provider));
  const rules = keyless && local.length === 0 ? embedded(models) : undefined;
  return html`<div class="card">
    <div class="card-title">${icon("server-process")} Choose a model</div>
    ${local.length > 0 ? offers(panel, local) : html`<p>${models && keyless ? NONE_ANSWERS : "Searching for model servers on this machine…"}</p>`}
    <div class="mark-acts">
      ${editorOnly(panel, html`<button type="button" class=${local.length > 0 ? "secondary" : "primary"} @click=${() => panel.host.post({ type: "command", command: "tiller.signIn" })}>Sign in to a provider</button>`)}
      ${
        local.length > OFFERS_MAX
          ? html`<button type="button" class="secondary" @click=${() => go(panel, "models")}>All models</button>`
          : html`<button type="button" class="secondary" @click=${() => loadModels(panel)}>Look again</button>`
      }
      ${rules ? html`<button type="button" class="secondary" title=${oneLine(rules.name)} @click=${() => configure(panel, { model: rules.model })}>Use Repair</button>` : nothing}
    </div>
    ${rules ? html`<p class="dim hint">${EMBEDDED_OFFER}</p>` : nothing}
  </div>`;
}

/** Returns the embedded rules, for a user who has neither a model server nor a key. */
function embedded(models: readonly ModelEntry[] | undefined): ModelEntry | undefined {
  return models?.find((one) => one.provider === EMBEDDED && one.auth === "ok");
}

function offers(panel: Panel, local: readonly ModelEntry[]): View {
  return html`<p>Ready to use, no key needed:</p>
    <div class="local-models">
      ${local.slice(0, OFFERS_MAX).map(
        (one) =>
          html`<button type="button" class="primary" @click=${() => configure(panel, { model: one.model })}>
            Use ${oneLine(one.name)} (${oneLine(panel.state.lists.keyless?.get(one.provider) ?? one.provider)})
          </button>`,
      )}
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
  const noFolder = action?.command === "tiller.openFolder";
  return html`<div class="welcome" role=${noFolder ? "status" : "alert"}>
    <div class="logo ${noFolder ? "" : "bad"}" aria-hidden="true">${icon(noFolder ? "folder" : "debug-disconnect")}</div>
    <h1>${noFolder ? "Open a folder to use Tiller" : isWeb(panel) ? "No connection to Tiller" : "Tiller is not running"}</h1>
    <p>${problem.text}</p>
    <div class="mark-acts middle">
      ${
        action
          ? html`<button type="button" class="primary" @click=${() => panel.host.post({ type: "command", command: action.command })}>${action.title}</button>`
          : nothing
      }
      ${
        noFolder || isWeb(panel) || action?.command === "tiller.showLog"
          ? nothing
          : html`<button type="button" class="secondary" @click=${() => panel.host.post({ type: "command", command: "tiller.showLog" })}>Show the log</button>`
      }
    </div>
  </div>`;
}
