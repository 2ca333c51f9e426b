// A SOCKS proxy on the loopback device through which a browser reaches its server, and which cuts connections.
import { connect, createServer, type Server, type Socket } from "node:net";

const OPEN = Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);

/** Speaks SOCKS5 without a login (RFC 1928), for addresses of IPv4 and names. */
export class Cutter {
  /** How many connections were cut. */
  cuts = 0;
  readonly #server: Server;
  readonly #pairs = new Set<[Socket, Socket]>();
  readonly #chance: () => number;
  #withinMs = 0;

  private constructor(chance: () => number) {
    this.#chance = chance;
    this.#server = createServer((browser) => this.#accept(browser));
  }

  /** @param chance Gives numbers from 0 to 1; where a connection is cut depends on nothing else. */
  static async start(chance: () => number): Promise<Cutter> {
    const made = new Cutter(chance);
    await new Promise<void>((listening) => made.#server.listen(0, "127.0.0.1", listening));
    return made;
  }

  get address(): string {
    const { port } = this.#server.address() as { port: number };
    return `socks5://127.0.0.1:${port}`;
  }

  /** From now on each connection ends after at most so long, in the middle of whatever the server sends then. */
  cutAtRandom({ withinMs }: { withinMs: number }): void {
    this.#withinMs = withinMs;
    for (const pair of this.#pairs) this.#cut(pair);
  }

  /** From now on connections stay as they are. */
  cutNoMore(): void {
    this.#withinMs = 0;
  }

  stop(): void {
    for (const [one, other] of this.#pairs) {
      one.destroy();
      other.destroy();
    }
    this.#server.close();
  }

  #cut(pair: [Socket, Socket]): void {
    if (!this.#pairs.delete(pair)) return;
    this.cuts += 1;
    for (const one of pair) one.resetAndDestroy();
  }

  #accept(browser: Socket): void {
    browser.on("error", () => browser.destroy());
    browser.once("data", () => {
      browser.write(Buffer.from([5, 0]));
      browser.once("data", (asked) => this.#connect(browser, asked));
    });
  }

  #connect(browser: Socket, asked: Buffer): void {
    const port = asked.readUInt16BE(asked.length - 2);
    const server = connect(port, "127.0.0.1", () => browser.write(OPEN));
    const pair: [Socket, Socket] = [browser, server];
    this.#pairs.add(pair);
    const life = this.#withinMs > 0 ? this.#chance() * this.#withinMs : Number.POSITIVE_INFINITY;
    const end = performance.now() + life;
    server.on("data", (data) => {
      const isDue = performance.now() > end && this.#withinMs > 0;
      browser.write(isDue ? data.subarray(0, Math.floor(this.#chance() * data.length)) : data);
      if (isDue) this.#cut(pair);
    });
    browser.pipe(server);
    server.on("error", () => browser.destroy()).on("close", () => browser.end());
    browser.on("close", () => {
      this.#pairs.delete(pair);
      server.destroy();
    });
  }
}
