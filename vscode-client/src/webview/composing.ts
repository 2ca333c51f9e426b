// What can happen to the composer: words, attachments, completion, history. Pure.

import type { Compose } from "../shared/messages.js";
import type { Block } from "../shared/wire.js";
import type { Attachment, Composer, Offers, Rewriting } from "./state.js";
import { baseName, linesText, plural, sizeText } from "./words.js";

const HISTORY_KEPT = 100;

export type ComposerAction =
  | { type: "typed"; text: string }
  | { type: "attached"; block: Block; label?: string; detail?: string; icon?: string }
  | { type: "reading"; page: string }
  | { type: "pageRead"; page: string; blocks: readonly Block[] }
  | { type: "detached"; id: number }
  | { type: "offered"; offers: Offers | undefined }
  | { type: "chose"; step: 1 | -1 }
  | { type: "recalled"; step: 1 | -1 }
  | { type: "editing"; queueId: string; text: string }
  | { type: "rewriting"; rewriting: Rewriting; text: string; blocks: readonly Block[] }
  | { type: "withFiles"; files: boolean }
  | { type: "cleared"; sent: string }
  | { type: "remembered"; history: readonly string[] };

export function compose(composer: Composer, action: ComposerAction): Composer {
  switch (action.type) {
    case "typed":
      return { ...composer, text: action.text, recalled: -1, kept: "" };
    case "attached":
      return attach(composer, { ...described(action.block), ...definedOf(action) }, action.block);
    case "reading":
      return reading(composer, action.page);
    case "pageRead":
      return pageRead(composer, action);
    case "detached":
      return { ...composer, attachments: composer.attachments.filter((one) => one.id !== action.id) };
    case "offered":
      return { ...composer, offers: action.offers };
    case "chose":
      return chosen(composer, action.step);
    case "recalled":
      return recalled(composer, action.step);
    case "editing":
      return { ...setAside(composer), editing: action.queueId, rewriting: undefined, text: action.text };
    case "rewriting":
      return rewritten(composer, action);
    case "withFiles":
      return composer.rewriting
        ? { ...composer, rewriting: { ...composer.rewriting, files: action.files } }
        : composer;
    case "cleared":
      return { ...cleared(composer, action.sent), sends: composer.sends + 1 };
    case "remembered":
      return { ...composer, history: action.history };
  }
}

function rewritten(
  composer: Composer,
  { rewriting, text, blocks }: Extract<ComposerAction, { type: "rewriting" }>,
): Composer {
  const emptied = { ...setAside(composer), text, editing: undefined, rewriting };
  return blocks.reduce<Composer>((next, block) => attach(next, described(block), block), emptied);
}

/** Empties the composer for another message. What the user was writing is kept; a message that was being changed is not. */
function setAside(composer: Composer): Composer {
  const { text, attachments, editing, rewriting } = composer;
  const isOther = editing !== undefined || rewriting !== undefined;
  const draft = isOther ? composer.draft : { text, attachments };
  return { ...composer, text: "", attachments: [], draft, focusAsked: composer.focusAsked + 1 };
}

/** Takes what the editor puts into the composer. */
export function filled(composer: Composer, message: Compose): Composer {
  let next = composer;
  if (message.text !== undefined) {
    const joined =
      composer.text && !message.replace ? `${composer.text.trimEnd()}\n${message.text}` : message.text;
    next = { ...next, text: joined };
  }
  if (message.replace && message.blocks) next = { ...next, attachments: [] };
  for (const block of message.blocks ?? []) next = attach(next, described(block), block);
  return message.focus === false ? next : { ...next, focusAsked: next.focusAsked + 1 };
}

type Shown = { label: string; detail?: string | undefined; icon: string };

function definedOf(action: { label?: string; detail?: string; icon?: string }): Partial<Shown> {
  return {
    ...(action.label !== undefined && { label: action.label }),
    ...(action.detail !== undefined && { detail: action.detail }),
    ...(action.icon !== undefined && { icon: action.icon }),
  };
}

function attach(composer: Composer, shown: Shown, block: Block): Composer {
  return { ...composer, attachments: withBlock(composer.attachments, shown, block) };
}

function withBlock(
  attachments: readonly Attachment[],
  shown: Shown & { reading?: string },
  block: Block,
): readonly Attachment[] {
  if (attachments.some((one) => sameBlock(one.block, block))) return attachments;
  const id = 1 + Math.max(0, ...attachments.map((one) => one.id));
  return [...attachments, { id, block, ...shown }];
}

/** Shows a web page among the attachments while it is read; it can be removed there. */
function reading(composer: Composer, page: string): Composer {
  const shown = { label: `Reading ${page}`, icon: "globe", reading: page };
  const attachments = withBlock(composer.attachments, shown, { type: "text", text: page });
  return { ...composer, attachments };
}

/** Returns whether a page is among the attachments while it is read, also of a message that was set aside. */
export function isReading({ attachments, draft }: Composer, page: string): boolean {
  return [...attachments, ...(draft?.attachments ?? [])].some((one) => one.reading === page);
}

/** Puts what was read in the place of a page that nobody has removed, also in a message that was set aside meanwhile. */
function pageRead(
  composer: Composer,
  { page, blocks }: Extract<ComposerAction, { type: "pageRead" }>,
): Composer {
  const read = (attachments: readonly Attachment[]): readonly Attachment[] => {
    const others = attachments.filter((one) => one.reading !== page);
    if (others.length === attachments.length) return attachments;
    return blocks.reduce<readonly Attachment[]>(
      (next, block) => withBlock(next, described(block), block),
      others,
    );
  };
  const { draft } = composer;
  return {
    ...composer,
    attachments: read(composer.attachments),
    draft: draft && { ...draft, attachments: read(draft.attachments) },
  };
}

function sameBlock(one: Block, other: Block): boolean {
  if (one.type !== other.type) return false;
  return one.type !== "image" && JSON.stringify(one) === JSON.stringify(other);
}

type Sized = Pick<Extract<Block, { type: "file" }>, "size" | "data">;

const FILE_ICONS: Readonly<Record<string, string>> = { "application/pdf": "file-pdf" };

function bytesText({ size, data }: Sized): string | undefined {
  const bytes = size ?? ((data?.length ?? 0) * 3) / 4;
  return bytes ? sizeText(bytes) : undefined;
}

/** Says what a block is in a few words. */
export function described(block: Block): Shown {
  switch (block.type) {
    case "resource": {
      const found = block as Extract<Block, { type: "resource" }>;
      if (found.uri.startsWith("terminal:"))
        return {
          label: "Terminal",
          detail: plural((found.text ?? "").split("\n").length, "line"),
          icon: "terminal",
        };
      if (found.uri.endsWith("/")) return { label: `${baseName(found.uri.slice(0, -1))}/`, icon: "folder" };
      const detail = found.range ? linesText(found.range) : undefined;
      return { label: baseName(found.uri), detail, icon: "file" };
    }
    case "selection": {
      const found = block as Extract<Block, { type: "selection" }>;
      return { label: baseName(found.uri), detail: linesText(found.range), icon: "list-selection" };
    }
    case "diagnostics": {
      const found = block as Extract<Block, { type: "diagnostics" }>;
      return { label: baseName(found.uri), detail: plural(found.items.length, "problem"), icon: "warning" };
    }
    case "image":
      return { label: "Picture", detail: bytesText(block as Sized), icon: "file-media" };
    case "file": {
      const found = block as Extract<Block, { type: "file" }>;
      return { label: found.name, detail: bytesText(found), icon: FILE_ICONS[found.mime ?? ""] ?? "file" };
    }
    case "diff":
      return { label: "Diff", icon: "diff" };
    case "skill":
      return { label: (block as Extract<Block, { type: "skill" }>).name, icon: "lightbulb" };
    case "text": {
      const text = (block as Extract<Block, { type: "text" }>).text;
      return { label: "Text", detail: plural(text.split("\n").length, "line"), icon: "note" };
    }
    default:
      return { label: block.type, icon: "symbol-misc" };
  }
}

function chosen(composer: Composer, step: 1 | -1): Composer {
  const { offers } = composer;
  if (!offers || offers.items.length === 0) return composer;
  const count = offers.items.length;
  return { ...composer, offers: { ...offers, chosen: (offers.chosen + step + count) % count } };
}

function recalled(composer: Composer, step: 1 | -1): Composer {
  const place = composer.recalled + step;
  if (place < -1 || place >= composer.history.length) return composer;
  const kept = composer.recalled === -1 ? composer.text : composer.kept;
  const text = place === -1 ? kept : (composer.history[place] ?? "");
  return { ...composer, text, recalled: place, kept };
}

/** Leaves a message of a session that is in front no more; the user's own draft comes back. */
export function left(composer: Composer): Composer {
  const isOther = composer.editing !== undefined || composer.rewriting !== undefined;
  return isOther ? cleared(composer, "") : composer;
}

function cleared(composer: Composer, sent: string): Composer {
  const words = sent.trim();
  const history = words
    ? [words, ...composer.history.filter((one) => one !== words)].slice(0, HISTORY_KEPT)
    : composer.history;
  return {
    ...composer,
    text: composer.draft?.text ?? "",
    attachments: composer.draft?.attachments ?? [],
    draft: undefined,
    offers: undefined,
    editing: undefined,
    rewriting: undefined,
    recalled: -1,
    kept: "",
    history,
  };
}
