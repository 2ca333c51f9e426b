// What views are given to act with: the state of this moment, a way to change it, and the extension.

import type { Host } from "./host.js";
import type { Action } from "./reduce.js";
import type { PanelState } from "./state.js";

export interface Panel {
  readonly state: PanelState;
  readonly host: Host;
  /** Whether the session is only looked at: that of a task, or any where the role of the page is not `operator`. */
  readonly readOnly: boolean;
  /** Whether the session is that of a task. */
  readonly isTask: boolean;
  dispatch(action: Action): void;
}
