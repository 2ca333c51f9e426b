// Writes a commit message for the changes of a repository into the input box of the Source Control view.

import * as vscode from "vscode";
import { AgentError, NOT_SERVED } from "../agent/port.js";
import { type Repository, repositoryOf } from "../editor/git.js";
import type { Window } from "../window.js";
import { runTiller } from "./sign-in.js";

const DIFF_CHARS = 60_000;
const SUBJECTS = 8;
/** Models that think need their time. */
const ANSWER_MS = 180_000;
const ORDER =
  "Write a commit message for this diff: a subject line of at most 72 characters in the style of the recent subjects, and only if the reason is not plain from it, a blank line and a short body. Answer with the message alone, without quotes or code fences.";
const RUN = ["run", "--no-session", "--no-daemon", "--permission", "plan", "--max-turns", "3"];

/** Asks the model of the session once, in a run that changes nothing. Text that stands in the box is replaced only after a question. */
export async function commitMessage(window: Window, source: unknown): Promise<void> {
  const repository = await repositoryOf(rootOf(source) ?? vscode.window.activeTextEditor?.document.uri);
  const prompt = await promptOf(repository);
  const model = window.watch.now?.model;
  const chosen = model == null ? [] : ["--model", model];
  const place = {
    location: vscode.ProgressLocation.SourceControl,
    title: "Tiller: writing a commit message",
  };
  const words = [...RUN, "--tools", "readonly", ...chosen, "-C", repository.rootUri.fsPath, "-"];
  const said = await vscode.window.withProgress(place, () =>
    runTiller(window, words, { input: prompt, timeoutMs: ANSWER_MS }),
  );
  const message = said.trim().replace(/^```\w*\n([\s\S]*)\n```$/, "$1");
  if (message === "") throw new AgentError("The model gave no commit message.", NOT_SERVED);
  // Looked at now: the user may have typed meanwhile.
  if (repository.inputBox.value.trim() === "" || (await mayReplace(message)))
    repository.inputBox.value = message;
}

async function promptOf(repository: Repository): Promise<string> {
  const staged = await repository.diff(true);
  const diff = staged.trim() === "" ? await repository.diff(false) : staged;
  if (diff.trim() === "") throw new AgentError("There are no changes to describe.", NOT_SERVED);
  // A repository without a commit has no log.
  const recent = await repository.log({ maxEntries: SUBJECTS }).catch(() => []);
  const subjects = recent.map(({ message }) => message.split("\n", 1)[0]).join("\n");
  const cut = diff.length > DIFF_CHARS ? "\n[the rest of the diff is left out]" : "";
  const parts = [
    ORDER,
    subjects && `Recent subjects:\n${subjects}`,
    `Diff:\n${diff.slice(0, DIFF_CHARS)}${cut}`,
  ];
  return parts.filter(Boolean).join("\n\n");
}

async function mayReplace(message: string): Promise<boolean> {
  const question = "Replace the commit message that you have written?";
  const options = { modal: true, detail: message };
  return (await vscode.window.showWarningMessage(question, options, "Replace")) === "Replace";
}

/** Gives the root of the Source Control provider whose title button was pressed. */
function rootOf(source: unknown): vscode.Uri | undefined {
  return (source as { rootUri?: vscode.Uri } | undefined)?.rootUri;
}
