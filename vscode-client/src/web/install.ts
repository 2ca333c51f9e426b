// Defines what the panel takes for VS Code, before the panel starts.

import type { ToHost, ToPanel } from "../shared/messages.js";
import { PageHost } from "./page-host.js";

const KEPT = "tiller.draft";

declare global {
  interface Window {
    acquireVsCodeApi?: () => unknown;
  }
}

// The panel listens to messages of its window: those of another page do not reach it.
window.addEventListener("message", (event) => event.isTrusted && event.stopImmediatePropagation(), true);

const host = new PageHost((message: ToPanel) => {
  window.dispatchEvent(new MessageEvent("message", { data: message }));
});

window.acquireVsCodeApi = () => ({
  postMessage: (message: ToHost) => queueMicrotask(() => void host.hear(message)),
  getState: () => JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as unknown,
  setState: (state: unknown) => sessionStorage.setItem(KEPT, JSON.stringify(state)),
});

// What the page shows until this script has come.
document.getElementById("app")?.replaceChildren();

const dark = matchMedia("(prefers-color-scheme: dark)");
function colour(): void {
  document.body.classList.toggle("vscode-dark", dark.matches);
  document.body.classList.toggle("vscode-light", !dark.matches);
}
dark.addEventListener("change", colour);
colour();
