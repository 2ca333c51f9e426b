// An event that others listen to, without the editor: what is built on it runs in plain tests.

export interface Disposable {
  dispose(): void;
}

export class Signal<T> {
  readonly #listeners = new Set<(value: T) => void>();

  /** Listens until disposed of. */
  listen(listener: (value: T) => void): Disposable {
    this.#listeners.add(listener);
    return { dispose: () => this.#listeners.delete(listener) };
  }

  fire(value: T): void {
    for (const listener of [...this.#listeners]) listener(value);
  }
}
