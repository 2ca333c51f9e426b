// A command as it is typed into a terminal, so that no part of it runs before the user presses Enter.

import { basename } from "node:path";
import type { Programs } from "../server/programs.js";

const PROBE_MS = 5_000;

/** Shells that can take a paste as one text, and how they are asked whether they do. */
const PROBES: Readonly<Record<string, { args: string[]; accepts: RegExp }>> = {
  // Off before bash 5.1, or by the user's inputrc.
  bash: { args: ["-c", "bind -v"], accepts: /^set enable-bracketed-paste on$/m },
  zsh: { args: ["-c", "zmodload zsh/zle; echo paste=$+zle_bracketed_paste"], accepts: /^paste=1$/m },
  fish: { args: ["--version"], accepts: /version [3-9]/ },
};

/** Returns the command without what a terminal takes as a key: control characters, and Enter at its end. */
export function typedText(command: string): string {
  return command
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[^\P{Cc}\n\t]/gu, "")
    .trim();
}

/** Says whether a text can be typed as it is: line breaks run commands, and tabs complete words. */
export function isOneLine(text: string): boolean {
  return !/[\n\t]/.test(text);
}

/** Marks a text of several lines as one paste (bracketed paste of xterm), which a shell does not run line by line. */
export function pasted(text: string): string {
  return `\u001b[200~${text}\u001b[201~`;
}

/** Checks whether a shell takes a paste as one text; one that is not asked here does not. */
export async function acceptsPaste(shell: string, programs: Pick<Programs, "run">): Promise<boolean> {
  const probe = PROBES[basename(shell)];
  if (probe === undefined) return false;
  const { out } = await programs.run(shell, probe.args, { timeoutMs: PROBE_MS });
  return probe.accepts.test(out);
}
