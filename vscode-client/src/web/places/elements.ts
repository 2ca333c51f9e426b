// The places that only the page has. They come when one of them is first visited.

import { ScriptTasks } from "./script-tasks.js";
import { Shares } from "./shares.js";

customElements.define("tiller-shares", Shares);
customElements.define("tiller-script-tasks", ScriptTasks);
