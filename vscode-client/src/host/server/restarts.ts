// How often a server that ends is started again. Pure but for the clock that is given in.

const WINDOW_MS = 180_000;
const MOST = 4;
const FIRST_PAUSE_MS = 250;

/** Counts the ends of one server. */
export class Restarts {
  readonly #now: () => number;
  #ends: number[] = [];

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Takes note of an end; gives the pause before the next start in ms, or undefined: enough. */
  next(): number | undefined {
    const now = this.#now();
    this.#ends = [...this.#ends.filter((at) => now - at < WINDOW_MS), now];
    return this.#ends.length > MOST ? undefined : FIRST_PAUSE_MS * 2 ** (this.#ends.length - 1);
  }

  /** Starts counting anew: the user asked for a start. */
  forgive(): void {
    this.#ends = [];
  }
}
