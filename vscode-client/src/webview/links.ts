// Links in the words of a model: files open in the editor, addresses are asked for by the extension, nothing else.

import type { Root } from "../shared/wire.js";
import type { Panel } from "./panel-context.js";

/** Takes every click on a link of the transcript. */
export function followLinks(panel: Panel): void {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : undefined;
    if (!link) return;
    event.preventDefault();
    const address = link.getAttribute("href") ?? "";
    if (/^(https?|mailto):/i.test(address)) panel.host.post({ type: "openLink", url: address });
    else openFile(panel, address);
  });
}

function openFile(panel: Panel, address: string): void {
  const found = placeOf(address);
  if (found) openPath(panel, found);
}

/** Returns the first folder of the session. */
export function primaryRoot(panel: Panel): Root | undefined {
  const roots = panel.state.session?.roots;
  return roots?.find((root) => root.primary) ?? roots?.[0];
}

/** Opens a file by its path, absolute or below the first folder of the session, at a line that counts from 0. */
export function openPath(panel: Panel, found: { path: string; line0: number }): void {
  const root = primaryRoot(panel);
  const path = found.path.split("/").map(encodeURIComponent).join("/");
  const below = root && `${root.uri.replace(/\/$/, "")}/${path}`;
  const uri = found.path.startsWith("/") ? `file://${path}` : below;
  if (!uri) return;
  const line = { line: found.line0, character: 0 };
  panel.host.post({ type: "open", uri, range: { start: line, end: line } });
}

/** Reads `src/a.py`, `src/a.py:12`, `src/a.py#L12` or a file URI. Pure. */
export function placeOf(address: string): { path: string; line0: number } | undefined {
  const found = /^(?:file:\/\/)?([^#?]*?)(?::(\d+)(?::\d+)?|#L(\d+).*)?$/.exec(address);
  const path = found?.[1];
  if (!path || path.startsWith("//") || /^[a-z][a-z0-9+.-]*:/i.test(path)) return undefined;
  // `command:1` is a scheme; a name with a line has a slash or a dot.
  if (found[2] !== undefined && !/[./]/.test(path)) return undefined;
  const line = Number(found[2] ?? found[3] ?? 1);
  try {
    return { path: decodeURIComponent(path.replace(/^\.\//, "")), line0: Math.max(0, line - 1) };
  } catch {
    return undefined;
  }
}
