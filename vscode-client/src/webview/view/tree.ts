// All branches of the session: go on from any place, fork it, put a label on it.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import { type TreeLine, treeLines } from "../tree-lines.js";
import { fork, label, navigate } from "../verbs.js";
import { agoText } from "../words.js";
import { placeHead } from "./header.js";
import { icon, iconButton, spinner, styled, type View } from "./parts.js";

const ICONS: Readonly<Record<string, string>> = {
  user: "account",
  assistant: "sparkle",
  toolResult: "tools",
  bashExecution: "terminal",
  compaction: "fold",
  branchSummary: "fold",
  label: "tag",
};
const SHOWN_MAX = 2000;

export function tree(panel: Panel): View {
  const { nodes, leaf } = panel.state.lists;
  const all = panel.state.folds["tree:all"] === true;
  const toggle = iconButton({
    icon: "list-tree",
    title: all ? "Show messages only" : "Show every entry",
    pressed: all,
    act: () => panel.dispatch({ type: "folded", key: "tree:all", open: !all }),
  });
  const lines = nodes ? treeLines(nodes, leaf).filter((line) => all || isWord(line)) : [];
  return html`${placeHead(panel, "Branches", toggle)}
    <div class="place-list tree" role="list" aria-label="Entries of the session">
      ${nodes ? nothing : html`<div class="pad">${spinner()}</div>`}
      ${nodes && lines.length === 0 ? html`<div class="empty dim">No messages yet.</div>` : nothing}
      ${repeat(
        lines.slice(-SHOWN_MAX),
        (line) => line.node.entry,
        (line) => entry(panel, line),
      )}
    </div>`;
}

function isWord({ node, isLeaf }: TreeLine): boolean {
  return (
    isLeaf ||
    node.label !== undefined ||
    !["toolResult", "label", "modelChange", "thinkingChange"].includes(node.kind)
  );
}

function entry(panel: Panel, line: TreeLine): View {
  const { node, depth, onBranch, isLeaf } = line;
  const { menu } = panel.state;
  const classes = `entry ${onBranch ? "on-branch" : ""} ${isLeaf ? "current" : ""}`;
  return html`<div class=${classes} role="listitem" ${styled({ "--depth": String(Math.min(depth, 8)) })}>
    ${entryMain(panel, line)} ${entryActs(panel, line)}
    ${menu === `go:${node.entry}` ? question(panel, node.entry) : nothing}
    ${menu === `label:${node.entry}` ? labelForm(panel, node.entry, node.label ?? "") : nothing}
  </div>`;
}

function entryMain(panel: Panel, { node, isLeaf }: TreeLine): View {
  const going = panel.state.session?.run !== undefined;
  const ago = agoText(node.at, panel.state.nowMs || Date.now());
  return html`<button
    type="button"
    class="entry-main"
    ?disabled=${going || isLeaf || panel.readOnly}
    title="Go on from here"
    @click=${() => leave(panel, node.entry)}
  >
    <span class="entry-title clip">${icon(ICONS[node.kind] ?? "circle-small")} ${oneLine(node.preview) || node.kind}</span>
    <span class="entry-detail dim clip">
      ${node.label ? html`<span class="badge label">${oneLine(node.label)}</span> ` : nothing}${isLeaf ? "you are here · " : ""}${ago}
    </span>
  </button>`;
}

function entryActs(panel: Panel, { node }: TreeLine): View {
  const name = `label:${node.entry}`;
  const toggle = () => panel.dispatch({ type: "menu", name: panel.state.menu === name ? undefined : name });
  const forkHere = {
    icon: "repo-forked",
    title: "Fork a new session before this message",
    act: () => fork(panel, node.entry),
    disabled: panel.state.session?.run !== undefined,
  };
  if (panel.readOnly) return nothing;
  return html`${iconButton({ icon: "tag", title: "Label", act: toggle })}
  ${node.kind === "user" ? iconButton(forkHere) : nothing}`;
}

/** Leaving a branch can take its gist along; whether to ask is a setting of the server. */
function leave(panel: Panel, entry: string): void {
  if (panel.state.session?.config.offerBranchSummary) panel.dispatch({ type: "menu", name: `go:${entry}` });
  else navigate(panel, entry, { summarize: false });
}

function question(panel: Panel, entry: string): View {
  const act = (summarize: boolean) => {
    panel.dispatch({ type: "menu", name: undefined });
    navigate(panel, entry, { summarize });
  };
  return html`<div class="confirm" role="alertdialog" aria-label="Go on from here?">
    <span class="grow">Go on from here?</span>
    <button type="button" class="primary" @click=${() => act(false)}>Go</button>
    <button type="button" class="secondary" title="Adds a summary of the branch you leave" @click=${() => act(true)}>Summarize and go</button>
    <button type="button" class="secondary" @click=${() => panel.dispatch({ type: "menu", name: undefined })}>Stay</button>
  </div>`;
}

function labelForm(panel: Panel, entry: string, text: string): View {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("label");
    panel.dispatch({ type: "menu", name: undefined });
    if (field instanceof HTMLInputElement) label(panel, entry, field.value);
  };
  return html`<form class="confirm" @submit=${submit}>
    <input name="label" class="grow" type="text" maxlength="200" aria-label="Label" placeholder="Label; leave empty to remove" .value=${text} />
    <button type="submit" class="primary">Set</button>
  </form>`;
}
