// Looks for programs on this machine and runs them briefly.

import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";

/** How a program that was run briefly ended. */
export interface Ran {
  /** Undefined: it could not be started, or did not end in time. */
  code: number | undefined;
  out: string;
  err: string;
}

export interface Programs {
  /** Gives the file that a name or path means, if it is there and may be run. */
  find(name: string): Promise<string | undefined>;
  run(command: string, args: readonly string[], options?: RunOptions): Promise<Ran>;
}

export interface RunOptions {
  timeoutMs?: number;
  /** Written to its standard input, which is closed then. */
  input?: string;
  abort?: AbortSignal;
  /** The folder that it runs in; the user's home unless it is given. */
  cwd?: string;
  /** So much of what it says is kept. */
  maxBytes?: number;
}

const PROBE_MS = 10_000;
const OUTPUT_BYTES = 4 * 1024 * 1024;

/** The programs of this machine. */
export function localPrograms(env: NodeJS.ProcessEnv = process.env, platform = process.platform): Programs {
  return {
    find: (name) => findProgram(name, env, platform),
    run: (command, args, options = {}) => runProgram(command, args, env, options),
  };
}

async function findProgram(
  name: string,
  env: NodeJS.ProcessEnv,
  platform: string,
): Promise<string | undefined> {
  const expanded = name.startsWith("~/") ? join(homedir(), name.slice(2)) : name;
  // A path that is not absolute would mean another program in every folder that is opened.
  const isPath = /[\\/]/.test(expanded);
  if (isPath && !isAbsolute(expanded)) return undefined;
  const endings = platform === "win32" ? ["", ".exe", ".cmd"] : [""];
  const folders = isPath ? [""] : searched(env);
  for (const folder of folders) {
    for (const ending of endings) {
      const file = join(folder, expanded + ending);
      if (await isProgram(file)) return file;
    }
  }
  return undefined;
}

/** A relative entry would mean whatever folder is open: it is passed over. */
function searched(env: NodeJS.ProcessEnv): string[] {
  const path = env["PATH"] ?? env["Path"] ?? "";
  return path.split(delimiter).filter((folder) => isAbsolute(folder));
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

function runProgram(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  options: RunOptions,
): Promise<Ran> {
  return new Promise((done) => {
    const child = execFile(
      command,
      [...args],
      {
        env,
        timeout: options.timeoutMs ?? PROBE_MS,
        maxBuffer: options.maxBytes ?? OUTPUT_BYTES,
        encoding: "utf8",
        cwd: options.cwd ?? homedir(),
        windowsHide: true,
        ...(options.abort === undefined ? {} : { signal: options.abort }),
      },
      (error, out, err) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : undefined;
        done({ code, out, err: err || (error?.message ?? "") });
      },
    );
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(options.input ?? "");
  });
}
