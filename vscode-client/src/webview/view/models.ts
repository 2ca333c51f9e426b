// All models by provider, with their window and prices; and where a provider still wants a key.

import { html, nothing } from "lit";
import type { ModelEntry } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import { editorOnly, isWeb } from "../surface.js";
import { configure, go } from "../verbs.js";
import { countText } from "../words.js";
import { placeHead } from "./header.js";
import { icon, iconButton, spinner, type View } from "./parts.js";

const SHOWN_MAX = 150;

export function models(panel: Panel): View {
  const { models: listed, modelQuery } = panel.state.lists;
  const query = modelQuery.toLowerCase();
  const fitting = (listed ?? []).filter((one) => `${one.model} ${one.name}`.toLowerCase().includes(query));
  const add = iconButton({
    icon: "add",
    title: "Add a model server…",
    act: () => panel.host.post({ type: "command", command: "tiller.addModel" }),
  });
  return html`${placeHead(panel, "Models", editorOnly(panel, add))}
    <div class="search">
      ${icon("search")}
      <input
        type="search"
        placeholder="Search models and providers"
        aria-label="Search models"
        .value=${modelQuery}
        @input=${(event: Event) => panel.dispatch({ type: "listed", lists: { modelQuery: (event.currentTarget as HTMLInputElement).value } })}
      />
    </div>
    <div class="place-list" tabindex="0" role="region" aria-label="List of models">
      ${listed ? nothing : html`<div class="pad">${spinner()}</div>`}
      ${byProvider(usableFirst(fitting).slice(0, SHOWN_MAX)).map(([provider, of]) => providerView(panel, provider, of))}
      ${fitting.length > SHOWN_MAX ? html`<div class="empty dim">And ${fitting.length - SHOWN_MAX} more: type a part of the name.</div>` : nothing}
      ${listed && fitting.length === 0 ? html`<div class="empty dim">No model has this name.</div>` : nothing}
    </div>`;
}

/** A model that can be used is never among those that are left out. */
function usableFirst(all: readonly ModelEntry[]): ModelEntry[] {
  return [...all].sort((one, other) => Number(other.auth === "ok") - Number(one.auth === "ok"));
}

/** Providers that can be used come first. */
function byProvider(listed: readonly ModelEntry[]): [string, ModelEntry[]][] {
  const found = new Map<string, ModelEntry[]>();
  for (const one of listed) found.set(one.provider, [...(found.get(one.provider) ?? []), one]);
  return [...found].sort(([, one], [, other]) => Number(isUsable(other)) - Number(isUsable(one)));
}

function isUsable(of: readonly ModelEntry[]): boolean {
  return of.some((one) => one.auth === "ok");
}

function providerView(panel: Panel, provider: string, of: readonly ModelEntry[]): View {
  const usable = isUsable(of);
  const expired = of.some((one) => one.auth === "expired");
  const sign = () => panel.host.post({ type: "command", command: "tiller.signIn", args: [provider] });
  return html`<section class="provider" aria-label=${provider}>
    <div class="provider-head">
      ${icon(usable ? "pass" : "key", usable ? "good" : "")} <h3 class="grow">${oneLine(provider)}</h3>
      ${usable ? nothing : signIn(panel, provider, html`<button type="button" class="secondary" @click=${sign}>${expired ? "Sign in again" : "Sign in"}</button>`)}
    </div>
    <div role="radiogroup" aria-label="Models of ${provider}">${of.map((one) => model(panel, one))}</div>
  </section>`;
}

/** Keys are entered in an editor or a terminal, never in a browser. */
function signIn(panel: Panel, provider: string, button: View): View {
  return isWeb(panel) ? html`<code class="dim">tiller auth login ${oneLine(provider)}</code>` : button;
}

function model(panel: Panel, one: ModelEntry): View {
  const chosen = panel.state.session?.config.model === one.model;
  const prices = one.prices ? `$${one.prices.in} / $${one.prices.out} per 1M tokens` : "";
  const choose = () => {
    configure(panel, { model: one.model });
    go(panel, "transcript");
  };
  return html`<button type="button" class="entry-main model" role="radio" aria-checked=${String(chosen)} ?disabled=${one.auth !== "ok" || panel.readOnly} title=${one.model} @click=${choose}>
    <span class="entry-title clip">${icon(chosen ? "check" : "blank")} ${oneLine(one.name)}</span>
    <span class="entry-detail dim clip">${[one.contextWindow > 0 ? `${countText(one.contextWindow)} window` : "", prices, one.images ? "images" : ""].filter(Boolean).join(" · ")}</span>
  </button>`;
}
