// Stops the process behind the server, by the program's own commands. Without the editor.

import type { Launch } from "./find.js";
import type { Programs } from "./programs.js";

const STOP_MS = 40_000;

/** Counts the sessions with a run; 0 also where no process runs behind the server, as on Windows. */
export async function runsGoingOn(programs: Programs, { command, base }: Launch): Promise<number> {
  const { out } = await programs.run(command, [...base, "daemon", "status", "--json"]);
  try {
    const { working } = JSON.parse(out) as { working?: unknown };
    return typeof working === "number" ? working : 0;
  } catch {
    return 0;
  }
}

export async function stopDaemon(
  programs: Programs,
  { command, base }: Launch,
  { force }: { force: boolean },
): Promise<string> {
  const words = [...base, "daemon", "stop", ...(force ? ["--force"] : [])];
  const { out, err } = await programs.run(command, words, { timeoutMs: STOP_MS });
  return (out.trim() || err.trim()).replaceAll("\n", "; ");
}
