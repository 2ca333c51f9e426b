// The repositories that VS Code's own Git extension has open.

import * as vscode from "vscode";

/** The part of a repository of VS Code's Git API that is used. */
export interface Repository {
  rootUri: vscode.Uri;
  inputBox: { value: string };
  /** Gives the diff of tracked files: of what is staged, or of what is not. */
  diff(cached?: boolean): Promise<string>;
  /** Gives the text of a file in a commit. */
  show(ref: string, path: string): Promise<string>;
  log(options: { maxEntries: number }): Promise<{ message: string }[]>;
}

interface GitApi {
  repositories: Repository[];
  getRepository(uri: vscode.Uri): Repository | null;
}

/** Gives the repository of a file or folder, else the first one. Throws when none is open. */
export async function repositoryOf(uri: vscode.Uri | undefined): Promise<Repository> {
  const git = vscode.extensions.getExtension<{ getAPI(version: 1): GitApi }>("vscode.git");
  const api = (await git?.activate())?.getAPI(1);
  const found = (uri && api?.getRepository(uri)) ?? api?.repositories[0];
  if (found === undefined) throw new Error("No Git repository is open in this window.");
  return found;
}
