// Pictures, PDF files and texts that are chosen, taken with the camera, dropped or pasted: stored by the server, named in the prompt.

import type { ToPanel } from "../shared/messages.js";
import type { Block } from "../shared/wire.js";
import { keepPicture } from "../webview/pictures.js";
import { sizeText } from "../webview/words.js";

const PICTURES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/** What a file dialog offers. A phone then offers its camera too, and hands over photographs as JPEG. */
const ACCEPTED = [...PICTURES, "application/pdf", "text/*"].join(",");
const PICTURE_MAX_BYTES = 10 * 1024 * 1024;
/** What a prompt takes: a text has to fit into the context of the model. */
const TEXT_MAX_BYTES = 4 * 1024 * 1024;
const PDF = "application/pdf";
const PDF_MAX_BYTES = 20 * 1024 * 1024;
const SMALL_PX = 96;
/** An upload that takes longer is reported. */
const PATIENCE_MS = 1000;

export class Attachments {
  readonly #post: (message: ToPanel) => void;

  /** @param post Takes the messages for the panel. */
  constructor(post: (message: ToPanel) => void) {
    this.#post = post;
    // Before the panel, and wherever they are dropped: the browser would leave the page for a file.
    window.addEventListener("dragover", (event) => hasFiles(event.dataTransfer) && event.preventDefault());
    window.addEventListener("drop", (event) => this.#take(event, event.dataTransfer), true);
    window.addEventListener("paste", (event) => this.#take(event, event.clipboardData), true);
  }

  /** Lets the user choose files. */
  async choose(): Promise<void> {
    const field = document.createElement("input");
    field.type = "file";
    field.accept = ACCEPTED;
    field.multiple = true;
    const files = await new Promise<File[]>((chosen) => {
      field.addEventListener("change", () => chosen([...(field.files ?? [])]));
      field.addEventListener("cancel", () => chosen([]));
      field.click();
    });
    await this.#add(files);
  }

  #take(event: Event, data: DataTransfer | null): void {
    const files = [...(data?.files ?? [])];
    if (files.length === 0 || document.getElementById("composer-text") === null) return;
    event.preventDefault();
    event.stopPropagation();
    void this.#add(files);
  }

  /** Adds files to the prompt, each when it is there; tells of those that cannot be. */
  async #add(files: readonly File[]): Promise<void> {
    for (const file of files) {
      const late = setTimeout(
        () => this.#say("info", `Sending ${file.name} (${sizeText(file.size)})…`),
        PATIENCE_MS,
      );
      try {
        const block = PICTURES.includes(file.type) ? await storedPicture(file) : await storedFile(file);
        this.#post({ type: "compose", blocks: [block], focus: true });
      } catch (thrown) {
        this.#say("warning", thrown instanceof Error ? thrown.message : String(thrown));
      } finally {
        clearTimeout(late);
      }
    }
  }

  #say(level: "info" | "warning", text: string): void {
    this.#post({ type: "notice", level, text });
  }
}

function hasFiles(data: DataTransfer | null): boolean {
  return data?.types.includes("Files") === true;
}

/** Has the server store a picture; gives the block that names it. */
async function storedPicture(file: File): Promise<Block> {
  checkSize(file, PICTURE_MAX_BYTES, "Make it smaller.");
  const { blob, mime, size } = await stored(file, await file.arrayBuffer());
  const whole = URL.createObjectURL(file);
  keepPicture(blob, { small: (await small(file)) ?? whole, whole });
  return { type: "image", mime, blob, size };
}

/** Has the server store a PDF or a text; gives the block that names it. */
async function storedFile(file: File): Promise<Block> {
  const isPdf = file.type === PDF;
  checkSize(file, isPdf ? PDF_MAX_BYTES : TEXT_MAX_BYTES, "Put it into the folder and name it.");
  const bytes = await file.arrayBuffer();
  if (!isPdf && !isText(bytes))
    throw new Error(
      `${file.name} is no picture (PNG, JPEG, GIF or WebP), PDF or text. Put it into the folder and name it.`,
    );
  return { type: "file", name: file.name, ...(await stored(file, bytes)) };
}

function checkSize({ name, size }: File, most: number, remedy: string): void {
  if (size > most)
    throw new Error(`${name} has ${sizeText(size)}; at most ${sizeText(most)} can be sent. ${remedy}`);
}

function isText(bytes: ArrayBuffer): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** Has the server store bytes, under their SHA-256. */
async function stored(file: File, bytes: ArrayBuffer): Promise<{ blob: string; mime: string; size: number }> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const name = [...digest].map((one) => one.toString(16).padStart(2, "0")).join("");
  const response = await fetch(`/v1/blobs/${name}`, {
    method: "PUT",
    headers: { "content-type": "application/octet-stream" },
    body: bytes,
  }).catch(() => {
    throw new Error(`${file.name} was not sent: Tiller cannot be reached.`);
  });
  const answer = (await response.json().catch(() => ({}))) as Stored;
  if (!response.ok || answer.blob === undefined)
    throw new Error(`${file.name} was not taken: ${answer.error?.message ?? `status ${response.status}`}`);
  const { blob, mime = file.type, size = file.size } = answer;
  return { blob, mime, size };
}

interface Stored {
  blob?: string;
  mime?: string;
  size?: number;
  error?: { message?: string };
}

/** Makes a small copy: a photograph of 12 megapixels would be decoded whole for each chip. */
async function small(file: File): Promise<string | undefined> {
  try {
    const picture = await createImageBitmap(file);
    const share = Math.min(1, SMALL_PX / Math.max(picture.width, picture.height));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(picture.width * share));
    canvas.height = Math.max(1, Math.round(picture.height * share));
    canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
    picture.close();
    return canvas.toDataURL("image/png");
  } catch {
    // The browser cannot read it; the server has judged by its first bytes only.
    return undefined;
  }
}
