// Where the pictures of a conversation come from: sent along as data, or stored and named by their SHA-256.

import type { BlobReadResult, Block } from "../shared/wire.js";
import type { Panel } from "./panel-context.js";
import { isWeb } from "./surface.js";
import { attempt } from "./verbs.js";

export type Picture = Extract<Block, { type: "image" }>;

/** Pictures that this page has itself, by SHA-256: the small ones of the composer, and the whole ones. */
interface Own {
  small: string;
  whole: string;
}

const OWN_MAX = 50;
const own = new Map<string, Own>();
/** Ids of the stored pictures that were asked for. */
const asked = new Set<string>();

/** Keeps the addresses of a picture that was chosen in this page, so that it is not fetched again. */
export function keepPicture(blob: string, addresses: Own): void {
  own.set(blob, addresses);
  const [oldest] = own.keys();
  if (own.size <= OWN_MAX || oldest === undefined) return;
  URL.revokeObjectURL(own.get(oldest)?.whole ?? "");
  own.delete(oldest);
  asked.delete(oldest);
}

/**
 * Gives the address of a picture; undefined where it cannot be shown, or not yet.
 *
 * Any other address than one of this page's own server would be asked for from somebody else's machine.
 */
export function pictureAddress(panel: Panel, block: Picture, size: keyof Own): string | undefined {
  const { data, mime, blob } = block;
  if (data !== undefined) return dataAddress(mime, data);
  if (blob === undefined || !/^[0-9a-f]{64}$/.test(blob)) return undefined;
  const found = own.get(blob)?.[size];
  if (found !== undefined || !isWeb(panel)) return found ?? read(panel, blob);
  return `/v1/blobs/${blob}`;
}

function dataAddress(mime: string, data: string): string | undefined {
  return /^image\/(png|jpeg|gif|webp)$/.test(mime) ? `data:${mime};base64,${data}` : undefined;
}

/** Asks once for a stored picture in the panel of an editor, which has no address for it; it is shown when it has come. */
function read(panel: Panel, blob: string): undefined {
  if (asked.has(blob)) return;
  asked.add(blob);
  // Not while the page is being made: what is asked for changes its state.
  queueMicrotask(() =>
    attempt(panel, `blob:${blob}`, async () => {
      let text = "";
      let offset: number | undefined = 0;
      while (offset !== undefined) {
        const piece: BlobReadResult = await panel.host.request("agent/blob/read", { blob, offset });
        text += piece.data;
        offset = piece.next;
        const whole = offset === undefined ? dataAddress(piece.mime, text) : undefined;
        if (whole !== undefined) keepPicture(blob, { small: whole, whole });
      }
    }),
  );
}
