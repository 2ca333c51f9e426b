// Where the panel is shown: beside an editor, or in a browser, which lacks what only an editor can do and may have a role.

import { nothing } from "lit";
import { ROLES, type Role } from "../shared/messages.js";
import type { Panel } from "./panel-context.js";
import type { View } from "./view/parts.js";

/** Says whether the panel is the page of `tiller web`. */
export function isWeb(panel: Panel): boolean {
  return panel.state.surface === "web";
}

/** Shows what needs an editor or its settings; nothing in a browser. */
export function editorOnly(panel: Panel, view: View): View {
  return isWeb(panel) ? nothing : view;
}

/** Says whether the role of the page allows what needs at least the role `least`. */
export function may(panel: Panel, least: Role): boolean {
  return ROLES.indexOf(panel.state.role) >= ROLES.indexOf(least);
}

/** Shows what acts, where the role of the page allows it. */
export function actsOf(panel: Panel, least: Role, view: View): View {
  return may(panel, least) ? view : nothing;
}
