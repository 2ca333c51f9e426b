// What a browser does in the place of an editor: the clipboard, links, files that are chosen or saved.

import type { Block } from "../shared/wire.js";

const IMAGES = "image/png,image/jpeg,image/gif,image/webp";
const IMAGE_MAX_BYTES = 5 * 1024 * 1024;

/** Copies text; a page that was not loaded from this machine or over TLS has no clipboard of its own. */
export async function copy(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export function openLink(address: string): void {
  const { protocol } = new URL(address, location.href);
  if (protocol === "http:" || protocol === "https:") window.open(address, "_blank", "noopener,noreferrer");
}

/** Saves text as a file of the browser's downloads. */
export function save(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  // Not in the page: its handler of links would take the click.
  link.click();
  URL.revokeObjectURL(address);
}

/** Lets the user choose pictures, or take one with the camera. Throws when one is too big. */
export async function choosePictures(): Promise<Block[]> {
  const field = document.createElement("input");
  field.type = "file";
  field.accept = IMAGES;
  field.multiple = true;
  const files = await new Promise<File[]>((chosen) => {
    field.addEventListener("change", () => chosen([...(field.files ?? [])]));
    field.addEventListener("cancel", () => chosen([]));
    field.click();
  });
  return Promise.all(files.map(picture));
}

async function picture(file: File): Promise<Block> {
  if (file.size > IMAGE_MAX_BYTES) throw new Error(`${file.name} is larger than 5 MB. Make it smaller.`);
  const address = await new Promise<string>((read, failed) => {
    const reader = new FileReader();
    reader.onload = () => read(String(reader.result));
    reader.onerror = () => failed(new Error(`${file.name} could not be read.`));
    reader.readAsDataURL(file);
  });
  return { type: "image", mime: file.type, data: address.slice(address.indexOf(",") + 1) };
}
