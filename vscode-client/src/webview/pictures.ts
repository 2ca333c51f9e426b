// Pictures that the server stores: each is asked for once, in pieces, and shown when it has come.

import type { Host } from "./host.js";
import type { View } from "./view/parts.js";

const SHOWN = /^image\/(png|jpeg|gif|webp)$/;
/** A long session has many pictures; those that were asked for longest ago are asked for again. */
const HELD_MAX = 64;

type Shows = (address: string | undefined) => View;

const held = new WeakMap<Host, Map<string, Promise<View>>>();

/**
 * Returns the view of a stored picture, the same promise each time, so that it is not drawn anew.
 *
 * `shows` makes it of an address; undefined: the server does not have it, or it is none.
 */
export function storedPicture(host: Host, blob: string, shows: Shows): Promise<View> {
  const pictures = held.get(host) ?? new Map<string, Promise<View>>();
  held.set(host, pictures);
  const asked = pictures.get(blob) ?? read(host, blob).then(shows);
  pictures.delete(blob);
  pictures.set(blob, asked);
  const [oldest] = pictures.keys();
  if (pictures.size > HELD_MAX && oldest !== undefined) pictures.delete(oldest);
  return asked;
}

async function read(host: Host, blob: string): Promise<string | undefined> {
  const pieces: string[] = [];
  let mime = "";
  let offset: number | undefined = 0;
  try {
    while (offset !== undefined) {
      const piece: { mime: string; data: string; next?: number } = await host.request("agent/blob/read", {
        blob,
        offset,
      });
      pieces.push(piece.data);
      mime = piece.mime;
      offset = piece.next;
    }
  } catch {
    return undefined;
  }
  return SHOWN.test(mime) ? `data:${mime};base64,${pieces.join("")}` : undefined;
}
