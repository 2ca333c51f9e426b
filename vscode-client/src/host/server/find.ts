// Decides which server is started: the one that the user named, the one on the PATH, or the extension's own.

import { type Installed, installedPython, type Wheels } from "./install.js";
import type { Programs } from "./programs.js";
import { quoted } from "./python.js";

export interface Launch {
  command: string;
  /** Before the word `lsp`, and before the words of any other command of the program. */
  base: string[];
  /** Behind `lsp`. */
  words: string[];
  /** Who chose it, to tell the user when it fails. */
  from: "setting" | "path" | "own";
}

export type Search =
  | { kind: "launch"; launch: Launch }
  | { kind: "missing"; text: string; fix: "settings" | "python" | "log" };

export interface Wishes {
  /** `tiller.server.path`; empty: nothing was said. */
  path: string;
  /** `tiller.server.args`: words behind `lsp`. */
  args: readonly string[];
}

export interface Places {
  programs: Programs;
  wheels: Wheels | undefined;
  storage: string;
  /** Installs the extension's own, with progress before the user. */
  install: () => Promise<Installed>;
  log: (text: string) => void;
}

const NAME = "tiller";

export async function findServer(wishes: Wishes, places: Places): Promise<Search> {
  const { programs, log } = places;
  const words = [...wishes.args];
  if (wishes.path.trim() !== "") {
    const named = wishes.path.trim();
    const command = await programs.find(named);
    if (command !== undefined)
      return { kind: "launch", launch: { command, base: [], words, from: "setting" } };
    const text = `The setting tiller.server.path names ${quoted(named)}, which is no program that can be run. Name it by an absolute path, or one on the PATH.`;
    return { kind: "missing", text, fix: "settings" };
  }
  const onPath = await programs.find(NAME);
  if (onPath !== undefined) {
    const said = await programs.run(onPath, ["--version"]);
    // Others have programs of that name.
    if (/^tiller \d/.test(said.out))
      return { kind: "launch", launch: { command: onPath, base: [], words, from: "path" } };
    log(
      `${onPath} is no server of ours: it says ${quoted((said.out || said.err).slice(0, 200))} to --version`,
    );
  }
  return ownServer(words, places);
}

async function ownServer(words: string[], places: Places): Promise<Search> {
  const { programs, wheels, storage } = places;
  if (wheels === undefined) {
    const text =
      "No program `tiller` is on the PATH, and this build of the extension brings none. Install it with pip, or set tiller.server.path.";
    return { kind: "missing", text, fix: "settings" };
  }
  let python = await installedPython(programs, wheels, storage);
  if (python === undefined) {
    const installed = await places.install();
    if (installed.kind === "failed")
      return { kind: "missing", text: installed.text, fix: /Python/.test(installed.text) ? "python" : "log" };
    python = installed.python;
  }
  const base = ["-I", "-m", "tiller_server.cli.entry"];
  return { kind: "launch", launch: { command: python, base, words, from: "own" } };
}
