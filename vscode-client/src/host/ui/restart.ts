// Restarts the server with the process behind it, which serves all windows of the user.

import * as vscode from "vscode";
import { localPrograms } from "../server/programs.js";
import { runsGoingOn, stopDaemon } from "../server/stop-daemon.js";
import type { Window } from "../window.js";

export async function restartServer({ daemon, log }: Window): Promise<void> {
  const { launch } = daemon;
  if (launch !== undefined) {
    const programs = localPrograms();
    const working = await runsGoingOn(programs, launch);
    if (working > 0 && !(await isConfirmed(working))) return;
    // What it says is for a terminal; a process that does not end shows when the next one starts.
    const said = await stopDaemon(programs, launch, { force: working > 0 });
    if (said !== "") log.info(`The process behind the server: ${said}`);
  }
  await daemon.restart();
}

async function isConfirmed(working: number): Promise<boolean> {
  const which = working === 1 ? "A session has a run" : `${working} sessions have runs`;
  const question = `${which} going on. Restart the server all the same?`;
  const detail =
    "The server serves all windows. Runs are stopped; what they said and changed until then is kept.";
  const restart = "Stop Them and Restart";
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, restart)) === restart;
}
