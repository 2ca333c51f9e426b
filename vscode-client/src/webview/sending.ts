// Sends what stands in the composer, and takes in what is pasted, dropped and completed.

import type { Gathered } from "../shared/messages.js";
import type { Block, EditorContext } from "../shared/wire.js";
import { isReading } from "./composing.js";
import { newId } from "./ids.js";
import type { Panel } from "./panel-context.js";
import { type Draft, isBusy, type Rewriting } from "./state.js";
import { attempt, changeQueue, compact, go, goBefore, openSession, rename } from "./verbs.js";
import { plural, sizeText } from "./words.js";

/** Pasted text above this becomes an attachment, so that the composer stays a place for words. */
const PASTE_INLINE_MAX = 4000;
/** What the server takes in one prompt, with room for the rest of it. */
const PASTE_MAX_BYTES = 6 * 1024 * 1024;
const PDF = "application/pdf";
const IMAGE_MAX_BYTES = 5 * 1024 * 1024;
const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** What the panel itself answers to a slash. */
export const OWN_COMMANDS: Readonly<Record<string, { says: string; run(panel: Panel, rest: string): void }>> =
  {
    compact: { says: "Summarize the older part of the conversation", run: compact },
    new: { says: "Start a new session", run: (panel) => openSession(panel, "new") },
    sessions: { says: "Show earlier sessions", run: (panel) => go(panel, "sessions") },
    tree: { says: "Show the branches of this session", run: (panel) => go(panel, "tree") },
    checkpoints: {
      says: "Restore an earlier state of the files",
      run: (panel) => go(panel, "checkpoints"),
    },
    changes: { says: "Show all changes", run: (panel) => go(panel, "changes") },
    model: { says: "Choose another model", run: (panel) => go(panel, "models") },
    rename: { says: "Give the session a title", run: rename },
    export: {
      says: "Export the session as Markdown",
      run: (panel) => panel.host.post({ type: "command", command: "tiller.exportMarkdown" }),
    },
  };

/** How words travel: as the server decides, before the next call of the model, or when the run is over. */
export type Delivery = "auto" | "steer" | "followUp";

export function send(panel: Panel, delivery: Delivery = "auto"): void {
  const { text, attachments, editing, rewriting } = panel.state.composer;
  if (!text.trim() && attachments.length === 0) return;
  if (attachments.some((one) => one.reading !== undefined)) {
    refuse(
      panel,
      "The web page is still being read. Send the message when it is attached, or remove the page.",
    );
    return;
  }
  if (editing) {
    changeQueue(panel, [{ op: "replace", queueId: editing, content: [{ type: "text", text }] }]);
    panel.dispatch({ type: "composer", action: { type: "cleared", sent: "" } });
    return;
  }
  if (!rewriting && attachments.length === 0 && runOwn(panel, text)) return;
  const content: Block[] = attachments.map((one) => one.block);
  if (text.trim()) content.push({ type: "text", text });
  const messageId = newId();
  panel.dispatch({ type: "composer", action: { type: "cleared", sent: text } });
  const said = { content, messageId, delivery };
  attempt(
    panel,
    `prompt:${messageId}`,
    () => deliver(panel, { text, attachments, rewriting, said }),
    "prompt",
  );
}

interface Outgoing extends Draft {
  rewriting: Rewriting | undefined;
  said: { content: Block[]; messageId: string; delivery: Delivery };
}

/** Sends a message, in the place of an earlier one where it was that. What was not taken goes back to where it was written. */
async function deliver(panel: Panel, { text, attachments, rewriting, said }: Outgoing): Promise<void> {
  const blocks = attachments.map((one) => one.block);
  try {
    if (rewriting) await goBefore(panel, rewriting);
  } catch (error) {
    if (rewriting)
      panel.dispatch({ type: "composer", action: { type: "rewriting", rewriting, text, blocks } });
    throw error;
  }
  try {
    // An empty context stands for none: the one that the editor told last is not added.
    const context = panel.state.withoutContext ? { context: { open: [] } } : {};
    await submit(panel, { ...said, ...context });
  } catch (error) {
    panel.dispatch({ type: "compose", ...(panel.state.composer.text ? {} : { text }), blocks });
    throw error;
  }
}

async function submit(
  panel: Panel,
  said: { content: Block[]; messageId: string; delivery: Delivery; context?: EditorContext },
): Promise<void> {
  const command = bashOf(said.content);
  if (command) {
    await panel.host.request("agent/bash", command);
    return;
  }
  await panel.host.request("agent/prompt", said);
}

/** `!command` runs it for the user; `!!command` keeps it from the model. */
function bashOf(content: readonly Block[]): { command: string; excludeFromContext: boolean } | undefined {
  const [only] = content;
  if (content.length !== 1 || only?.type !== "text") return undefined;
  const found = /^\s*(!!?)\s*(\S[\s\S]*)$/.exec((only as { text: string }).text);
  if (!found) return undefined;
  return { command: found[2] ?? "", excludeFromContext: found[1] === "!!" };
}

function runOwn(panel: Panel, text: string): boolean {
  const found = /^\/(\w+)(?:\s+([\s\S]*))?$/.exec(text.trim());
  const own = found?.[1] && Object.hasOwn(OWN_COMMANDS, found[1]) ? OWN_COMMANDS[found[1]] : undefined;
  if (!own || panel.state.lists.commands?.some((one) => one.name === found?.[1])) return false;
  panel.dispatch({ type: "composer", action: { type: "cleared", sent: "" } });
  own.run(panel, found?.[2] ?? "");
  return true;
}

/** Takes pasted or dropped things. Gives true when nothing is left for the text field. */
export function take(panel: Panel, data: DataTransfer): boolean {
  const files = [...data.files];
  for (const file of files) takeFile(panel, file);
  if (files.length > 0) return true;
  const uris = data.getData("application/vnd.code.uri-list") || data.getData("text/uri-list");
  const found = uris.split(/\r?\n/).filter((line) => /^(file|vscode-remote):/.test(line));
  for (const uri of found) attach(panel, { type: "resource", uri });
  if (found.length > 0) return true;
  return takeText(panel, data.getData("text/plain"));
}

function takeText(panel: Panel, text: string): boolean {
  if (text.length <= PASTE_INLINE_MAX) return false;
  if (text.length > PASTE_MAX_BYTES) {
    refuse(
      panel,
      `The pasted text has ${sizeText(text.length)}; at most ${sizeText(PASTE_MAX_BYTES)} can be sent. Save it as a file and name that with @.`,
    );
    return true;
  }
  const detail = `${plural(text.split("\n").length, "line")}, ${sizeText(text.length)}`;
  const action = { type: "attached", block: { type: "text", text }, label: "Pasted text", detail } as const;
  panel.dispatch({ type: "composer", action });
  return true;
}

function takeFile(panel: Panel, file: File): void {
  const isImage = IMAGES.has(file.type);
  if (!isImage && file.type !== PDF) {
    refuse(
      panel,
      `${file.name} is no picture (PNG, JPEG, GIF or WebP) or PDF. Name files of the workspace with @.`,
    );
    return;
  }
  if (file.size > IMAGE_MAX_BYTES) {
    // A dropped or pasted file has no path here, by which the server could read it.
    const remedy = isImage ? "Make it smaller." : "Add it from the disk with +.";
    refuse(
      panel,
      `${file.name} has ${sizeText(file.size)}; at most ${sizeText(IMAGE_MAX_BYTES)} can be dropped or pasted. ${remedy}`,
    );
    return;
  }
  attempt(panel, `file:${file.name}:${file.lastModified}`, async () => {
    const address = await addressOf(file);
    const data = address.slice(address.indexOf(",") + 1);
    if (isImage) attach(panel, { type: "image", mime: file.type, data });
    else attach(panel, { type: "file", name: file.name, mime: file.type, data });
  });
}

function addressOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error(`${file.name} could not be read.`));
    reader.readAsDataURL(file);
  });
}

export function attach(panel: Panel, block: Block): void {
  panel.dispatch({ type: "composer", action: { type: "attached", block } });
}

/** Attaches what the extension collects; says so when there is nothing. */
export function attachGathered(panel: Panel, what: Gathered): void {
  attempt(panel, `gather:${what}`, async () => {
    for (const block of await panel.host.gather(what)) attach(panel, block);
  });
}

/** Attaches a web page; says so when it cannot be read. */
export function attachPage(panel: Panel, page: string): void {
  panel.dispatch({ type: "composer", action: { type: "reading", page } });
  attempt(panel, `page:${page}`, async () => {
    let blocks: readonly Block[] = [];
    try {
      blocks = await panel.host.readPage(page);
    } catch (error) {
      // Nobody waits for a page that was removed.
      if (isReading(panel.state.composer, page)) throw error;
    } finally {
      panel.dispatch({ type: "composer", action: { type: "pageRead", page, blocks } });
    }
  });
}

function refuse(panel: Panel, text: string): void {
  panel.dispatch({ type: "toast", level: "warning", text });
}

/** Says what Enter does now. */
export function sendTitle(panel: Panel): string {
  const { session, composer } = panel.state;
  if (composer.editing) return "Change the queued message (Enter)";
  if (composer.rewriting) return "Send instead of the earlier message (Enter)";
  return session && isBusy(session)
    ? "Interrupt with this (Enter) · Send when done (Alt+Enter)"
    : "Send (Enter)";
}
