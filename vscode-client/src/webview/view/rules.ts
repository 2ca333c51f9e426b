// The permission rules in force: what runs without asking and what is refused, each with the way to remove it.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { Rule } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import { removeRule } from "../verbs.js";
import { placeHead } from "./header.js";
import { icon, iconButton, spinner, type View } from "./parts.js";

const VERDICTS: Readonly<Record<string, [string, string]>> = {
  allow: ["pass", "Allowed without asking"],
  deny: ["circle-slash", "Always refused"],
  ask: ["question", "Always asks"],
};
const SCOPES: Readonly<Record<string, string>> = {
  run: "this run",
  session: "this session",
  project: "this project",
  user: "all projects",
};

export function rules(panel: Panel): View {
  const listed = panel.state.lists.rules;
  const groups = Object.entries(VERDICTS).map(
    ([verdict, [picture, words]]) =>
      [picture, words, (listed ?? []).filter((one) => one.verdict === verdict)] as const,
  );
  return html`${placeHead(panel, "Permission rules")}
    <div class="place-list">
      <div class="pad dim">A rule is added when you answer a permission request for longer than once.</div>
      ${listed ? nothing : html`<div class="pad">${spinner()}</div>`}
      ${listed?.length === 0 ? html`<div class="empty dim">No rules yet.</div>` : nothing}
      ${groups.map(([picture, words, some]) => (some.length > 0 ? group(panel, { picture, words, some }) : nothing))}
    </div>`;
}

function group(
  panel: Panel,
  { picture, words, some }: { picture: string; words: string; some: readonly Rule[] },
): View {
  return html`<section class="provider" aria-label=${words}>
    <div class="provider-head">${icon(picture)} <h3 class="grow">${words}</h3></div>
    <div role="list">
      ${repeat(
        some,
        (one) => `${one.scope}:${one.id}`,
        (one) => rule(panel, one),
      )}
    </div>
  </section>`;
}

function rule(panel: Panel, one: Rule): View {
  const text = ruleText(one);
  return html`<div class="entry" role="listitem">
    <div class="entry-main">
      <code class="entry-title clip" title=${text}>${text}</code>
      <span class="entry-detail dim">in ${SCOPES[one.scope] ?? one.scope}</span>
    </div>
    ${iconButton({ icon: "trash", title: `Remove the rule for ${text}`, act: () => removeRule(panel, one) })}
  </div>`;
}

/** Says what a rule covers. */
function ruleText({ tool, argvPrefix, path, host, mcp }: Rule): string {
  if (argvPrefix && argvPrefix.length > 0) return oneLine(`${argvPrefix.join(" ")} …`);
  return oneLine(
    mcp ?? host ?? (path === undefined ? (tool ?? "every tool") : `${tool ?? "any tool"} ${path}`),
  );
}
