// The button that types a command into a terminal of the editor.

import { nothing } from "lit";
import { primaryRoot } from "../links.js";
import type { Panel } from "../panel-context.js";
import { editorOnly } from "../surface.js";
import { iconButton, type View } from "./parts.js";

/** Offers to type a command into a terminal; nothing where the session has no folder on this machine. */
export function openTerminalButton(panel: Panel, command: unknown): View {
  const folder = primaryRoot(panel)?.uri;
  if (typeof command !== "string" || !command.trim() || !folder?.startsWith("file://")) return nothing;
  const act = () => panel.host.post({ type: "openTerminal", command, folder });
  return editorOnly(panel, iconButton({ icon: "link-external", title: "Open in terminal", act }));
}
