// Keeps the last command of the terminals and the end of what it printed, where VS Code tells of them (1.93 or newer).

import type { Disposable } from "../signal.js";

const OUTPUT_CHARS = 20_000;
export interface TerminalCommand {
  command: string;
  /** The end of what it printed, as it was printed. */
  output: string;
  exitCode: number | undefined;
}

interface Execution {
  commandLine: { value: string };
  read(): AsyncIterable<string>;
}

/** The part of VS Code 1.93 that is used. */
export interface ShellEvents {
  onDidStartTerminalShellExecution?(listener: (event: { execution: Execution }) => void): Disposable;
  onDidEndTerminalShellExecution?(
    listener: (event: { execution: Execution; exitCode: number | undefined }) => void,
  ): Disposable;
}

export class Terminals {
  readonly #listening: (Disposable | undefined)[];
  readonly #running = new WeakMap<Execution, TerminalCommand>();
  /** The command that began last; undefined before the first. */
  last: TerminalCommand | undefined;

  /** @param events The window of VS Code. */
  constructor(events: ShellEvents) {
    this.#listening = [
      events.onDidStartTerminalShellExecution?.(({ execution }) => void this.#follow(execution)),
      events.onDidEndTerminalShellExecution?.(({ execution, exitCode }) => {
        const found = this.#running.get(execution);
        if (found !== undefined) found.exitCode = exitCode;
      }),
    ];
  }

  dispose(): void {
    for (const one of this.#listening) one?.dispose();
  }

  async #follow(execution: Execution): Promise<void> {
    const command: TerminalCommand = {
      command: execution.commandLine.value,
      output: "",
      exitCode: undefined,
    };
    this.#running.set(execution, command);
    this.last = command;
    for await (const text of execution.read()) command.output = (command.output + text).slice(-OUTPUT_CHARS);
  }
}
