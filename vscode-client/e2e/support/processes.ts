// Programs that a story starts, and that end with it, together with whatever they started.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";

const GRACE_MS = 3000;

export interface Program {
  argv: readonly [string, ...string[]];
  env: NodeJS.ProcessEnv;
  cwd: string;
  /** Where its words go. */
  log: string;
}

/** Starts a program in a process group of its own. */
export function start({ argv: [command, ...rest], env, cwd, log }: Program): ChildProcess {
  const child = spawn(command, rest, { env, cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const file = createWriteStream(log);
  child.stdout?.pipe(file, { end: false });
  child.stderr?.pipe(file, { end: false });
  return child;
}

/** Ends a program and its group. One that has gone already is left alone. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  signal(child.pid, "SIGTERM");
  await Promise.race([gone, wait(GRACE_MS)]);
  signal(child.pid, "SIGKILL");
}

function signal(group: number, name: NodeJS.Signals): void {
  try {
    process.kill(-group, name);
  } catch {
    // The group is empty.
  }
}

/** Runs a program to its end and gives what it said; one that fails is an error with that in it. */
export async function run(
  argv: readonly [string, ...string[]],
  { env, cwd }: { env: NodeJS.ProcessEnv; cwd: string },
): Promise<string> {
  const [command, ...rest] = argv;
  const child = spawn(command, rest, { env, cwd, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${argv.join(" ")} ended with ${code}: ${said}`);
  return said;
}

/** Kills at once all programs of a ground whose command line fits; gives how many there were. */
export async function killAll(ground: { base: string }, command: RegExp): Promise<number> {
  const found = await programsOf(ground, command);
  for (const pid of found) process.kill(pid, "SIGKILL");
  return found.length;
}

/** Counts the programs of a ground that have those words in their command line. */
export async function processesWith(ground: { base: string }, words: string): Promise<number> {
  return (await programsOf(ground, new RegExp(words))).length;
}

/** A program belongs to the ground when its environment names it: so does whatever the story started. */
async function programsOf({ base }: { base: string }, command: RegExp): Promise<number[]> {
  const found: number[] = [];
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const texts = ["environ", "cmdline"].map((name) =>
      readFile(`/proc/${pid}/${name}`, "utf8").catch(() => ""),
    );
    const [environment = "", line = ""] = await Promise.all(texts);
    if (environment.includes(`${base}/`) && command.test(line)) found.push(Number(pid));
  }
  return found;
}
