// A machine of a test's own: which programs it has, and what they say.

import type { Programs, Ran, RunOptions } from "../../../src/host/server/programs.js";

export type Says = (args: readonly string[], options: RunOptions) => Partial<Ran>;

export class FakePrograms implements Programs {
  readonly ran: string[] = [];
  readonly #known: Record<string, Says>;

  /** @param known What a program says, by its name or path. */
  constructor(known: Record<string, Says>) {
    this.#known = known;
  }

  async find(name: string): Promise<string | undefined> {
    if (name.startsWith("/")) return name in this.#known ? name : undefined;
    return Object.keys(this.#known).find((path) => path.endsWith(`/${name}`));
  }

  async run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    this.ran.push([command, ...args].join(" "));
    const said = this.#known[command]?.(args, options) ?? { code: undefined, err: `spawn ${command} ENOENT` };
    return { code: 0, out: "", err: "", ...said };
  }
}

export const python =
  (version: string, program: string): Says =>
  () => ({ out: `${version}\n${program}\n` });
