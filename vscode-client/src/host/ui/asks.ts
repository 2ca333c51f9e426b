// A notification when the agent asks something while the panel is not to be seen.

import * as vscode from "vscode";
import type { PermissionRequest, Question } from "../../shared/wire.js";
import type { Watch } from "../agent/watch.js";
import type { PanelView } from "../panel/panel-view.js";
import { notifications } from "../settings.js";

const TITLE_CHARS = 160;

/** Shows each question once, until it is answered; that is done in the panel, where all of it can be read. */
export function announceQuestions(watch: Watch, panel: PanelView): void {
  const shown = new Map<string, () => void>();
  const told = new Set<string>();
  watch.changed.listen(({ now }) => {
    const waiting = new Set(now.pending.map((one) => one.request));
    for (const [request, close] of shown) if (!waiting.has(request)) close();
    const fresh = now.pending.filter((one) => !told.has(one.request));
    for (const one of fresh) told.add(one.request);
    for (const one of isWanted(panel) ? fresh : []) void announce(one, shown);
  });
  panel.visibility.listen((isVisible) => {
    if (isVisible) for (const close of [...shown.values()]) close();
  });
}

function isWanted(panel: PanelView): boolean {
  const wanted = notifications();
  return wanted === "always" || (wanted === "whenHidden" && !panel.isVisible);
}

/** As a progress, because other notifications stay when their reason has gone. */
async function announce(asked: PermissionRequest | Question, shown: Map<string, () => void>): Promise<void> {
  const title = `Tiller asks: ${titleOf(asked)} [Show](command:tiller.open)`;
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, () => {
    return new Promise<void>((close) => {
      shown.set(asked.request, () => {
        shown.delete(asked.request);
        close();
      });
    });
  });
}

/** One line, without what could pass for a line or a link of the editor's own. */
function titleOf(asked: PermissionRequest | Question): string {
  const said = "title" in asked ? asked.title : (asked.questions[0]?.text ?? "a question");
  const plain = said
    .replaceAll(/[\p{Cc}\p{Cf}]+/gu, " ")
    .replaceAll(/[[\]()]/g, " ")
    .trim();
  return plain.length > TITLE_CHARS ? `${plain.slice(0, TITLE_CHARS)}…` : plain;
}
