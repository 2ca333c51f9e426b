/** Delivers events to handlers by name. */
export class Bus {
  #handlers = new Map();

  on(name, handler) {
    const list = this.#handlers.get(name) ?? [];
    this.#handlers.set(name, [...list, handler]);
  }

  emit(name, payload) {
    for (const handler of this.#handlers.get(name) ?? []) {
      handler(payload);
    }
  }
}
