// Chooses the permission mode. What the user's own settings do not allow is asked about, and then written there.

import * as vscode from "vscode";
import type { Mode } from "../../shared/wire.js";
import { asAgentError } from "../agent/port.js";
import { ofSession, type Window } from "../window.js";
import { runTiller } from "./sign-in.js";

const MODES: Readonly<Record<Mode & ("plan" | "ask" | "auto" | "yolo"), string>> = {
  plan: "Plan: read-only.",
  ask: "Ask: asks before commands that the sandbox cannot contain.",
  auto: "Auto: as Ask, but your allow rules apply without asking.",
  yolo: "Full access: commands run without asking, also outside the sandbox. Protected files and commands still ask or are refused.",
};

export async function chooseMode(window: Window, mode: unknown): Promise<void> {
  if (!isMode(mode)) return;
  try {
    await configure(window, mode);
  } catch (thrown) {
    if (asAgentError(thrown).data?.kind !== "PermissionDenied") throw thrown;
    if (!(await isConfirmed(mode))) return;
    await runTiller(window, ["config", "mode", mode]);
    // The server watches the file as well; this one waits until it was read.
    await window.daemon.request("agent/resources/reload", ofSession(window));
    await configure(window, mode);
  }
}

async function configure(window: Window, mode: Mode): Promise<void> {
  await window.daemon.request("agent/session/configure", { ...ofSession(window), set: { mode } });
}

async function isConfirmed(mode: keyof typeof MODES): Promise<boolean> {
  const detail = `${MODES[mode]}\n\nThis is written into your own settings of Tiller. It holds in every folder and in each new session, until you choose a stricter mode there; a folder's settings can only be stricter.`;
  const allow = "Allow";
  const question = "Your own settings allow less. Allow this mode?";
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, allow)) === allow;
}

function isMode(mode: unknown): mode is keyof typeof MODES {
  return typeof mode === "string" && Object.hasOwn(MODES, mode);
}
