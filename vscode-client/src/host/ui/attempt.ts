// Where what a command could not do is told to the user.

import * as vscode from "vscode";
import { asAgentError } from "../agent/port.js";

/** Does something; a failure is one sentence before the user and a line in the log. */
export async function attempt<T>(
  log: vscode.LogOutputChannel,
  act: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await act();
  } catch (thrown) {
    const error = asAgentError(thrown);
    const hint = error.data?.hint === undefined ? "" : ` ${error.data.hint}`;
    log.warn(error.message);
    void vscode.window.showWarningMessage(`Tiller: ${error.data?.happened ?? error.message}${hint}`);
    return undefined;
  }
}
