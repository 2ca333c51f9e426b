// Installs the server that lies in the extension as wheels: once, without the network, into the extension's own storage.

import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Programs } from "./programs.js";
import type { Python } from "./python.js";

const TIMEOUT_MS = 300_000;
/** A window that still runs the version before has its files for so long. */
const OLD_MS = 7 * 24 * 3600 * 1000;
const DONE = "installed.json";
const PREFIX = "server-";

/** What lies beside the wheels: what to install, and with what. */
export interface Wheels {
  folder: string;
  requirement: string;
  /** File name of the wheel of pip: a Python often has none of its own. */
  pip: string;
  /** Version of the server, with a hash of it. */
  version: string;
  pythons: string[];
}

export type Installed = { kind: "installed"; python: string } | { kind: "failed"; text: string };

/** Reads what the extension brought; undefined when it brought no server. */
export async function bundledWheels(extension: string): Promise<Wheels | undefined> {
  const folder = join(extension, "wheels");
  try {
    const said = JSON.parse(await readFile(join(folder, "install.json"), "utf8")) as Omit<Wheels, "folder">;
    return { ...said, folder };
  } catch {
    return undefined;
  }
}

/** Gives the Python of an installation that works; undefined when there is none of this version. */
export async function installedPython(
  programs: Programs,
  wheels: Wheels,
  storage: string,
): Promise<string | undefined> {
  const home = homeOf(wheels, storage);
  const program = pythonOf(home);
  try {
    const said = JSON.parse(await readFile(join(home, DONE), "utf8")) as { requirement?: string };
    if (said.requirement !== wheels.requirement) return undefined;
  } catch {
    return undefined;
  }
  // The Python below it may have been removed or exchanged since.
  const ran = await programs.run(program, ["-I", "-c", "import tiller_server.cli.entry"]);
  return ran.code === 0 ? program : undefined;
}

/** Installs the server and gives its Python. What is half done is never used: it is made beside and renamed. */
export async function install(
  programs: Programs,
  wheels: Wheels,
  storage: string,
  options: { python: Python; say: (text: string) => void; abort?: AbortSignal },
): Promise<Installed> {
  const home = homeOf(wheels, storage);
  const made = `${home}.${process.pid}`;
  await mkdir(storage, { recursive: true });
  await rm(made, { recursive: true, force: true });
  options.say(`Installing ${wheels.requirement} with Python ${options.python.version} into ${home}`);
  const failure = await build(programs, wheels, made, options);
  if (failure !== undefined) {
    await rm(made, { recursive: true, force: true });
    return { kind: "failed", text: failure };
  }
  await takeOver(made, home);
  await forgetOld(storage, home);
  return { kind: "installed", python: pythonOf(home) };
}

/** Removes the installation of this version, so that the next start makes it anew. */
export async function uninstall(wheels: Wheels, storage: string): Promise<void> {
  await rm(homeOf(wheels, storage), { recursive: true, force: true });
}

async function build(
  programs: Programs,
  wheels: Wheels,
  home: string,
  { python, ...options }: { python: Python; say: (text: string) => void; abort?: AbortSignal },
): Promise<string | undefined> {
  const limits = { timeoutMs: TIMEOUT_MS, ...(options.abort === undefined ? {} : { abort: options.abort }) };
  const made = await programs.run(python.program, ["-I", "-m", "venv", "--without-pip", home], limits);
  options.say(made.out + made.err);
  if (made.code !== 0)
    return `A place for the server cannot be made in ${home}: ${lastLine(made.err || made.out)}`;
  const arguments_ = ["install", "--isolated", "--no-index", "--find-links", wheels.folder, "--no-input"];
  // Most modules are never loaded; those that are, Python compiles then.
  const quick = ["--no-compile"];
  const quiet = ["--disable-pip-version-check", "--no-warn-script-location", "--quiet"];
  const pip = join(wheels.folder, wheels.pip, "pip");
  const ran = await programs.run(
    pythonOf(home),
    ["-I", pip, ...arguments_, ...quick, ...quiet, wheels.requirement],
    limits,
  );
  options.say(ran.out + ran.err);
  if (options.abort?.aborted) return "The installation of the server was cancelled.";
  if (ran.code !== 0)
    return `The server cannot be installed with ${python.program}: ${lastLine(ran.err || ran.out)}`;
  await writeFile(
    join(home, DONE),
    JSON.stringify({ requirement: wheels.requirement, python: python.program }),
  );
  return undefined;
}

/** Puts a finished installation in its place; one that another window has put there meanwhile is as good. */
async function takeOver(made: string, home: string): Promise<void> {
  const old = `${made}.old`;
  const isThere = await stat(join(home, DONE)).then(
    () => true,
    () => false,
  );
  await rename(home, old).catch(() => undefined);
  try {
    await rename(made, home);
  } catch (thrown) {
    if (!isThere) throw thrown;
  }
  await Promise.all([old, made].map((one) => rm(one, { recursive: true, force: true })));
}

async function forgetOld(storage: string, home: string): Promise<void> {
  for (const name of await readdir(storage)) {
    const folder = join(storage, name);
    if (!name.startsWith(PREFIX) || folder === home) continue;
    const { mtimeMs } = await stat(folder);
    if (Date.now() - mtimeMs > OLD_MS) await rm(folder, { recursive: true, force: true });
  }
}

function homeOf(wheels: Wheels, storage: string): string {
  return join(storage, `${PREFIX}${wheels.version}`);
}

function pythonOf(home: string): string {
  return process.platform === "win32" ? join(home, "Scripts", "python.exe") : join(home, "bin", "python");
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1)?.trim() || "no reason was given";
}
