// Writes a commit message for the changes of a repository into the input box of the Source Control view.

import * as vscode from "vscode";
import { AgentError, NOT_SERVED } from "../agent/port.js";
import type { Window } from "../window.js";
import { runTiller } from "./sign-in.js";

interface Repository {
  rootUri: vscode.Uri;
  inputBox: { value: string };
  diff(cached?: boolean): Promise<string>;
  log(options: { maxEntries: number }): Promise<{ message: string }[]>;
}

const DIFF_CHARS = 60_000;
const SUBJECTS = 8;

/** Asks the model of the session once, without tools that change anything; what stands in the box is replaced. */
export async function commitMessage(window: Window, source: unknown): Promise<void> {
  const repository = await repositoryOf(source);
  const staged = await repository.diff(true);
  const diff = staged.trim() === "" ? await repository.diff(false) : staged;
  if (diff.trim() === "") throw new AgentError("There are no changes to describe.", NOT_SERVED);
  const recent = await repository.log({ maxEntries: SUBJECTS }).catch(() => []);
  const subjects = recent.map(({ message }) => message.split("\n", 1)[0]).join("\n");
  const prompt = [
    "Write a commit message for this diff: a subject line of at most 72 characters in the style of the recent subjects, and only if the reason is not plain from it, a blank line and a short body. Answer with the message alone, without quotes or code fences.",
    subjects && `Recent subjects:\n${subjects}`,
    `Diff:\n${diff.slice(0, DIFF_CHARS)}${diff.length > DIFF_CHARS ? "\n[the rest of the diff is left out]" : ""}`,
  ];
  const model = window.watch.now?.model;
  const words = [
    "run",
    "--no-session",
    "--no-daemon",
    "--permission",
    "plan",
    "--max-turns",
    "3",
    "--tools",
    "readonly",
  ];
  const chosen = model == null ? [] : ["--model", model];
  const place = {
    location: vscode.ProgressLocation.SourceControl,
    title: "Tiller: writing a commit message",
  };
  const said = await vscode.window.withProgress(place, () =>
    runTiller(
      window,
      [...words, ...chosen, "-C", repository.rootUri.fsPath, "-"],
      prompt.filter(Boolean).join("\n\n"),
    ),
  );
  const message = said.trim().replace(/^```\w*\n([\s\S]*)\n```$/, "$1");
  if (message === "") throw new AgentError("The model gave no commit message.", NOT_SERVED);
  repository.inputBox.value = message;
}

async function repositoryOf(source: unknown): Promise<Repository> {
  const git = vscode.extensions.getExtension<{ getAPI(version: 1): { repositories: Repository[] } }>(
    "vscode.git",
  );
  const repositories = (await git?.activate())?.getAPI(1).repositories ?? [];
  const root = (source as { rootUri?: vscode.Uri } | undefined)?.rootUri?.toString();
  const found = repositories.find((one) => one.rootUri.toString() === root) ?? repositories[0];
  if (found === undefined) throw new AgentError("No Git repository is open in this window.", NOT_SERVED);
  return found;
}
