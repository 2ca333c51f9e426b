// Where the pictures of a conversation come from: sent along as data, or stored and named by their SHA-256.

import type { Block } from "../shared/wire.js";
import type { Panel } from "./panel-context.js";
import { isWeb } from "./surface.js";

export type Picture = Extract<Block, { type: "image" }>;

/** Pictures that this page has itself, by SHA-256: the small ones of the composer, and the whole ones. */
interface Own {
  small: string;
  whole: string;
}

const OWN_MAX = 50;
const own = new Map<string, Own>();

/** Keeps the addresses of a picture that was chosen in this page, so that it is not fetched again. */
export function keepPicture(blob: string, addresses: Own): void {
  own.set(blob, addresses);
  const [oldest] = own.keys();
  if (own.size <= OWN_MAX || oldest === undefined) return;
  URL.revokeObjectURL(own.get(oldest)?.whole ?? "");
  own.delete(oldest);
}

/**
 * Gives the address of a picture; undefined where it cannot be shown.
 *
 * Any other address than one of this page's own server would be asked for from somebody else's machine.
 */
export function pictureAddress(panel: Panel, block: Picture, size: keyof Own): string | undefined {
  if (block.data !== undefined)
    return /^image\/(png|jpeg|gif|webp)$/.test(block.mime)
      ? `data:${block.mime};base64,${block.data}`
      : undefined;
  const { blob } = block;
  if (blob === undefined || !isWeb(panel) || !/^[0-9a-f]{64}$/.test(blob)) return undefined;
  return own.get(blob)?.[size] ?? `/v1/blobs/${blob}`;
}
