// Notifications: when the agent asks something that the panel does not show, and when a run ends that it does not show.

import * as vscode from "vscode";
import type { PermissionRequest, Question } from "../../shared/wire.js";
import type { Others, RunEnd } from "../agent/others.js";
import type { SessionFeed } from "../agent/session-feed.js";
import type { Watch } from "../agent/watch.js";
import type { PanelView } from "../panel/panel-view.js";
import { notifications } from "../settings.js";
import { endText, noticeLine } from "./status-text.js";

/** Shows each question once, until it is answered; that is done in the panel, where all of it can be read. */
export function announceQuestions(watch: Watch, others: Others, panel: PanelView): void {
  const shown = new Map<string, Shown>();
  const told = new Set<string>();
  const look = () => {
    const front = watch.now;
    const all = [...(front === undefined ? [] : [front]), ...others.all];
    const waiting = new Set(all.flatMap(({ pending }) => pending.map((one) => one.request)));
    for (const [request, { close }] of shown) if (!waiting.has(request)) close();
    for (const { session, pending } of all) {
      // What the panel shows needs no notification; a session that is not in front it does not show.
      const wanted = isWanted(panel, session === front?.session);
      const fresh = pending.filter((one) => wanted && !told.has(one.request));
      for (const one of fresh) {
        told.add(one.request);
        void announce(one, session, shown);
      }
    }
  };
  watch.changed.listen(look);
  others.changed.listen(look);
  panel.visibility.listen((isVisible) => {
    if (!isVisible) return look();
    for (const { session, close } of [...shown.values()]) if (session === watch.now?.session) close();
  });
}

interface Shown {
  session: string;
  close: () => void;
}

/** Shows how a run ended in a session that is not in front, and in the one in front while the panel is hidden. */
export function announceEnds(feed: SessionFeed, watch: Watch, others: Others, panel: PanelView): void {
  others.ended.listen((end) => {
    if (notifications() !== "never") announceEnd(end, { isFront: false });
  });
  feed.news.listen((news) => {
    if (news.kind !== "events" || watch.now === undefined || !isWanted(panel, true)) return;
    // Who stopped a run knows that it has ended.
    const event = news.events.findLast((one) => one.type === "run.ended" && one.status !== "cancelled");
    if (event?.type === "run.ended") announceEnd({ overview: watch.now, event }, { isFront: true });
  });
}

function announceEnd({ overview, event }: RunEnd, { isFront }: { isFront: boolean }): void {
  const { text, failed } = endText(overview, event, { isFront });
  const show = (chosen: string | undefined) => {
    if (chosen !== undefined) void vscode.commands.executeCommand("tiller.openSession", overview.session);
  };
  if (failed) void vscode.window.showWarningMessage(text, "Show").then(show);
  else void vscode.window.showInformationMessage(text, "Show").then(show);
}

function isWanted(panel: PanelView, isFront: boolean): boolean {
  const wanted = notifications();
  return wanted === "always" || (wanted === "whenHidden" && !(isFront && panel.isVisible));
}

/** As a progress, because other notifications stay when their reason has gone. */
async function announce(
  asked: PermissionRequest | Question,
  session: string,
  shown: Map<string, Shown>,
): Promise<void> {
  const link = `command:tiller.openSession?${encodeURIComponent(JSON.stringify([session]))}`;
  const title = `Tiller asks: ${titleOf(asked)} [Show](${link})`;
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, () => {
    return new Promise<void>((close) => {
      shown.set(asked.request, {
        session,
        close: () => {
          shown.delete(asked.request);
          close();
        },
      });
    });
  });
}

function titleOf(asked: PermissionRequest | Question): string {
  const said = "title" in asked ? asked.title : (asked.questions[0]?.text ?? "a question");
  return noticeLine(said);
}
