// Decides when the panel is shown again: at most once a frame, and less often when showing it takes long.

/** Of the time, at most a third goes into showing; the rest is left for typing and scrolling. */
const REST_FACTOR = 2;
const REST_MAX_MS = 250;

export class Frames {
  readonly #show: () => void;
  #asked = false;
  #earliest = 0;

  constructor(show: () => void) {
    this.#show = show;
  }

  /** Asks to be shown soon; asking again before that changes nothing. */
  ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    const wait = this.#earliest - performance.now();
    if (wait > 4) setTimeout(() => this.#next(), wait);
    else this.#next();
  }

  #next(): void {
    // A hidden page gets no frames, and must not fall behind for that.
    if (document.hidden) setTimeout(() => this.#run(), 100);
    else requestAnimationFrame(() => this.#run());
  }

  #run(): void {
    this.#asked = false;
    const began = performance.now();
    this.#show();
    const took = performance.now() - began;
    this.#earliest = performance.now() + (took > 8 ? Math.min(REST_MAX_MS, took * REST_FACTOR) : 0);
  }
}
