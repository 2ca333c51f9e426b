// Offers files, symbols and commands for the word before the cursor.

import type { Found } from "../shared/messages.js";
import type { Block } from "../shared/wire.js";
import type { Panel } from "./panel-context.js";
import { attachGathered, attachPage, OWN_COMMANDS } from "./sending.js";
import type { Offer, Offers } from "./state.js";
import { isWeb } from "./surface.js";
import { loadCommands } from "./verbs.js";

const SHOWN_MAX = 50;

/** What is being completed: the sign, where it stands, and what was typed after it. */
export interface Asked {
  sign: "@" | "/" | "#";
  start: number;
  typed: string;
}

/** Finds what is to be completed before the cursor. Pure. */
export function askedAt(text: string, cursor: number): Asked | undefined {
  const before = text.slice(0, cursor);
  const slash = /^\/([\w:.-]*)$/.exec(before);
  if (slash) return { sign: "/", start: 0, typed: slash[1] ?? "" };
  const page = /(?:^|\s)@(https?:\/\/\S*)$/i.exec(before);
  if (page?.[1] !== undefined) return { sign: "@", start: cursor - page[1].length - 1, typed: page[1] };
  const named = /(?:^|\s)([@#])([^\s@#]*)$/.exec(before);
  if (!named) return undefined;
  const typed = named[2] ?? "";
  return { sign: named[1] as "@" | "#", start: cursor - typed.length - 1, typed };
}

/** Looks at the word before the cursor and offers what fits; takes the offers away when nothing is asked. */
export function complete(panel: Panel, text: string, cursor: number): void {
  const asked = askedAt(text, cursor);
  if (!asked) {
    if (panel.state.composer.offers) offer(panel, undefined);
    return;
  }
  if (asked.sign === "/") {
    if (!panel.state.lists.commands) loadCommands(panel);
    offer(panel, { sign: "/", start: 0, items: commandsFor(panel, asked.typed), chosen: 0 });
    return;
  }
  if (PAGE.test(asked.typed)) {
    const items = isWeb(panel) ? [] : [pageOffer(asked.typed)];
    offer(panel, { sign: "@", start: asked.start, items, chosen: 0 });
    return;
  }
  offer(panel, narrowed(panel.state.composer.offers, asked));
  find(panel, asked).catch(() => offer(panel, undefined));
}

/** Keeps of the offers what still fits, until there is an answer: the key that takes one may come first. */
function narrowed(offers: Offers | undefined, { sign, start, typed }: Asked): Offers | undefined {
  if (offers?.sign !== sign || offers.start !== start) return undefined;
  const wanted = typed.toLowerCase();
  const items = offers.items.filter((one) => one.label.toLowerCase().includes(wanted));
  return { ...offers, items, chosen: 0 };
}

async function find(panel: Panel, asked: Asked): Promise<void> {
  const kind = asked.sign === "#" ? "findSymbols" : "findFiles";
  const { text } = panel.state.composer;
  const found = await panel.host.find(kind, asked.typed);
  // Meanwhile something was typed: a newer question is on its way, or nothing is asked any more.
  if (panel.state.composer.text !== text) return;
  const own =
    asked.sign === "@" && !isWeb(panel)
      ? GATHERED.filter((one) => one.label.startsWith(asked.typed.toLowerCase()))
      : [];
  const items = [...own, ...found.slice(0, SHOWN_MAX).map(offerOf)];
  offer(panel, { sign: asked.sign, start: asked.start, items, chosen: 0 });
}

const PAGE = /^https?:\/\/[^\s/]/i;

function pageOffer(url: string): Offer {
  return { label: url, detail: "attach this web page", icon: "globe", insert: "", page: url };
}

const GATHERED: readonly Offer[] = [
  { label: "selection", detail: "selected text", icon: "list-selection", insert: "", gather: "selection" },
  { label: "problems", detail: "errors and warnings", icon: "warning", insert: "", gather: "problems" },
  {
    label: "terminal",
    detail: "last command and its output",
    icon: "terminal",
    insert: "",
    gather: "terminal",
  },
  { label: "git", detail: "uncommitted changes", icon: "git-compare", insert: "", gather: "git" },
  { label: "url", detail: "a web page", icon: "globe", insert: "@https://" },
];

function offerOf(found: Found): Offer {
  return { label: found.label, detail: found.detail, icon: found.icon, insert: `${found.label} `, found };
}

function commandsFor(panel: Panel, typed: string): Offer[] {
  const own = Object.entries(OWN_COMMANDS).map(([name, { says }]) => ({
    name,
    description: says,
    source: "builtin",
  }));
  const brought = panel.state.lists.commands ?? [];
  const names = new Set(brought.map((one) => one.name));
  return [...brought, ...own.filter((one) => !names.has(one.name))]
    .filter((one) => one.name.toLowerCase().includes(typed.toLowerCase()))
    .slice(0, SHOWN_MAX)
    .map((one) => ({
      label: `/${one.name}`,
      detail: one.description,
      icon: ICONS[one.source] ?? "terminal",
      insert: `/${one.name} `,
    }));
}

const ICONS: Readonly<Record<string, string>> = {
  extension: "extensions",
  prompt: "note",
  skill: "lightbulb",
  builtin: "gear",
};

function offer(panel: Panel, offers: Offers | undefined): void {
  panel.dispatch({ type: "composer", action: { type: "offered", offers } });
}

/** Puts the chosen offer into the composer. Gives the new place of the cursor. */
export function accept(panel: Panel, item: Offer, cursor: number): number {
  const { composer } = panel.state;
  const start = composer.offers?.start ?? cursor;
  const text = composer.text.slice(0, start) + item.insert + composer.text.slice(cursor);
  panel.dispatch({ type: "composer", action: { type: "typed", text } });
  offer(panel, undefined);
  if (item.gather) attachGathered(panel, item.gather);
  if (item.page) attachPage(panel, item.page);
  if (item.found)
    panel.dispatch({
      type: "composer",
      action: { type: "attached", block: blockOf(item.found), label: item.label },
    });
  return start + item.insert.length;
}

function blockOf(found: Found): Block {
  return { type: "resource", uri: found.uri, ...(found.range && { range: found.range }) };
}
