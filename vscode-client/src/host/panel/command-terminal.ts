// Types a command into a new terminal of the editor. Pressing Enter stays with the user.

import * as vscode from "vscode";
import { AgentError, NOT_SERVED } from "../agent/port.js";
import { isOneLine, typedText } from "./typed-command.js";

const PROMPT_MS = 5_000;

/** The part of VS Code 1.93 that is used. */
interface PromptEvents {
  onDidChangeTerminalShellIntegration?(
    listener: (event: { terminal: vscode.Terminal; shellIntegration: { cwd?: vscode.Uri } }) => void,
  ): vscode.Disposable;
}

/** @param folder URI of the folder that the terminal opens in. */
export async function openCommandTerminal(command: string, folder: string): Promise<void> {
  const cwd = vscode.Uri.parse(folder, true);
  if (cwd.scheme !== "file")
    throw new AgentError("A terminal opens in a folder of this machine only.", NOT_SERVED);
  const text = typedText(command);
  const terminal = vscode.window.createTerminal({ name: "Tiller", cwd });
  terminal.show();
  if (!isOneLine(text)) {
    await vscode.env.clipboard.writeText(text);
    const message =
      "Tiller: the terminal would run each line of the command at once, so nothing was typed. The command is in the clipboard.";
    void vscode.window.showInformationMessage(message);
    return;
  }
  await prompt(terminal);
  terminal.sendText(text, false);
}

/** Waits for the prompt of a shell, where VS Code reports it, but not for long: what is typed before it is echoed twice. */
async function prompt(terminal: vscode.Terminal): Promise<void> {
  const { onDidChangeTerminalShellIntegration: listen } = vscode.window as PromptEvents;
  if (listen === undefined) return;
  await new Promise<void>((done) => {
    const timer = setTimeout(finish, PROMPT_MS);
    const listening = listen((event) => {
      // A shell reports its folder right before its prompt, and that it reports anything much earlier.
      if (event.terminal === terminal && event.shellIntegration.cwd !== undefined) finish();
    });
    function finish(): void {
      clearTimeout(timer);
      listening.dispose();
      done();
    }
  });
}
