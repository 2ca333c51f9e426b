// Reads server-sent events (WHATWG HTML, section 9.2). Unlike an `EventSource` it tells of comments, which keep a
// connection alive, and of the status of the answer.

export interface Heard {
  /** The data of an event, complete. */
  event(data: string): void;
  /** Anything came, also a comment. */
  sign(): void;
  /** How long to wait before a new connection, in milliseconds. */
  retry(ms: number): void;
}

/** Reads until the stream ends; throws what reading it throws. */
export async function readEvents(body: ReadableStream<Uint8Array>, heard: Heard): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new Parser(heard);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard.sign();
    parser.take(decoder.decode(value, { stream: true }));
  }
}

/** Takes text in any pieces. An event that is cut off by the end is dropped, as the standard says. */
export class Parser {
  readonly #heard: Heard;
  #rest = "";
  #data: string[] = [];

  constructor(heard: Heard) {
    this.#heard = heard;
  }

  take(text: string): void {
    // A `\r` at the end may be the first half of a line end.
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#line(line);
  }

  #line(line: string): void {
    if (line === "") {
      const data = this.#data.join("\n");
      if (this.#data.length > 0) this.#heard.event(data);
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "retry" && /^\d+$/.test(value)) this.#heard.retry(Number(value));
  }
}
