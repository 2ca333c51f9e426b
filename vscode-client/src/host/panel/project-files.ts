// The files of a project, without those that its ignore rules and the user's search settings leave out. Without the editor.

import { join } from "node:path";
import type { Programs } from "../server/programs.js";

/** More are not listed: a name among so many is found by the editor's own search. */
const MOST_FILES = 200_000;
const LIST_MS = 20_000;
const LIST_BYTES = 64 * 1024 * 1024;

/** Gives the glob patterns that `files.exclude` and `search.exclude` switch on; those with a condition do not count. */
export function excludedGlobs(...settings: (Readonly<Record<string, unknown>> | undefined)[]): string[] {
  const merged: Record<string, unknown> = Object.assign({}, ...settings);
  return Object.keys(merged).filter((glob) => merged[glob] === true);
}

/** Where ripgrep lies in an installation of VS Code; the first that is there is taken. */
export function ripgrepPlaces(
  appRoot: string,
  { platform, arch }: { platform: string; arch: string } = process,
): string[] {
  const name = platform === "win32" ? "rg.exe" : "rg";
  return ["node_modules", "node_modules.asar.unpacked"].flatMap((modules) => {
    const folder = join(appRoot, modules, "@vscode");
    const universal = join(folder, "ripgrep-universal", "bin", `${platform}-${arch}`, name);
    return [join(folder, "ripgrep", "bin", name), universal];
  });
}

/**
 * Lists the files below a folder, with "/" between names; undefined: ripgrep is not there or failed.
 *
 * ripgrep reads ignore files and starts no program of the folder, so it may look at folders that are not trusted. Ignore
 * files count outside of repositories too.
 */
export async function listFiles(
  programs: Programs,
  { rg, folder, globs }: { rg: readonly string[]; folder: string; globs: readonly string[] },
): Promise<string[] | undefined> {
  const words = ["--files", "--no-config", "--hidden", "--no-require-git", "--no-messages", "--null"];
  const excluded = ["**/.git", ...globs].flatMap((glob) => ["--glob", `!${glob}`]);
  for (const place of rg) {
    const program = await programs.find(place);
    if (program === undefined) continue;
    const options = { timeoutMs: LIST_MS, maxBytes: LIST_BYTES, cwd: folder };
    const { code, out } = await programs.run(program, [...words, ...excluded], options);
    // 1: there are no files; 2 with output: some folders could not be read.
    if (code !== 0 && code !== 1 && out === "") return undefined;
    return out
      .split("\0")
      .filter((name) => name !== "")
      .slice(0, MOST_FILES)
      .map((name) => name.replaceAll("\\", "/").replace(/^\.\//, ""));
  }
  return undefined;
}
