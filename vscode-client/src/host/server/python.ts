// Finds a Python that the server can run with.

import type { Programs } from "./programs.js";

export const LEAST: readonly [number, number] = [3, 11];
const NAMES = ["python3", "python3.13", "python3.12", "python3.14", "python3.11", "python"] as const;
const PROBE = "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable)";

export interface Python {
  program: string;
  /** Such as `3.12.4`. */
  version: string;
  /** Such as `3.12`. */
  minor: string;
}

export type PythonFound = { kind: "found"; python: Python } | { kind: "none"; text: string };

/**
 * Finds a Python of at least 3.11, for which the wheels were built.
 *
 * @param wanted A program that the user named; nothing else is tried then.
 * @param minors The versions that the wheels are for; empty: any.
 */
export async function findPython(
  programs: Programs,
  wanted: string | undefined,
  minors: readonly string[],
): Promise<PythonFound> {
  const seen = new Map<string, Python>();
  for (const name of wanted === undefined ? NAMES : [wanted]) {
    const python = await probe(programs, name);
    if (python === undefined || seen.has(python.program)) continue;
    if (fits(python, minors)) return { kind: "found", python };
    seen.set(python.program, python);
  }
  return { kind: "none", text: sentence(wanted, [...seen.values()], minors) };
}

async function probe(programs: Programs, name: string): Promise<Python | undefined> {
  const file = await programs.find(name);
  if (file === undefined) return undefined;
  const ran = await programs.run(file, ["-I", "-c", PROBE]);
  const [version, program] = ran.out.trim().split(/\r?\n/);
  const minor = /^(\d+\.\d+)\.\d+$/.exec(version ?? "")?.[1];
  if (ran.code !== 0 || version === undefined || minor === undefined) return undefined;
  return { program: program || file, version, minor };
}

function fits(python: Python, minors: readonly string[]): boolean {
  return minors.length === 0 ? isNewEnough(python) : minors.includes(python.minor);
}

function isNewEnough(python: Python): boolean {
  const [major = 0, minor = 0] = python.minor.split(".").map(Number);
  return major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1]);
}

function sentence(wanted: string | undefined, found: Python[], minors: readonly string[]): string {
  const [newest] = found;
  if (wanted !== undefined && newest === undefined)
    return `The setting tiller.server.python names ${quoted(wanted)}, which is no Python that runs.`;
  const needs = "Tiller needs Python 3.11 or newer";
  if (newest === undefined) return `${needs}, and none was found on this machine.`;
  const list = found.map((one) => `${one.version} (${one.program})`).join(", ");
  if (!found.some(isNewEnough)) return `${needs}; found only ${list}.`;
  return `This build of Tiller has its server for Python ${minors.join(", ")}; found only ${list}.`;
}

export function quoted(text: string): string {
  return JSON.stringify(text);
}
