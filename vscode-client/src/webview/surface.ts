// Where the panel is shown: beside an editor, or in a browser, which lacks what only an editor can do.

import { nothing } from "lit";
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
