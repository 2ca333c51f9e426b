// A small `tiller web` for tests: it serves the built page, takes the token, answers requests and streams a recorded log.

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Frame, Snapshot } from "../../src/shared/wire.js";
import { type Log, readLog } from "./stage.js";

export const PAGE = join("..", "server", "tiller_server", "web", "page");
const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript",
  css: "text/css",
  svg: "image/svg+xml",
  png: "image/png",
  ttf: "font/ttf",
  webmanifest: "application/manifest+json",
};
const TOKEN = "one-off";

interface Asked {
  method: string;
  params: Record<string, unknown>;
}

interface Opened {
  query: URLSearchParams;
  lastEventId: string | undefined;
}

/** Answers a method, at once or later; `refused` is sent as an error of the agent. */
type Reply = (params: Record<string, unknown>) => unknown;

export class WebServer {
  readonly asked: Asked[] = [];
  /** How each event stream was asked for. */
  readonly streams: Opened[] = [];
  readonly logins: unknown[] = [];
  /** What was stored, by SHA-256. */
  readonly blobs = new Map<string, Buffer>();
  readonly replies = new Map<string, Reply>();
  /** Requests to `/api/`, as `METHOD PATH` with their bodies. */
  readonly api: { route: string; body: Record<string, unknown> }[] = [];
  isSignedIn = false;
  role = "operator";
  readonly log: Log;
  readonly #server: Server;
  readonly #open = new Set<ServerResponse>();
  readonly #snapshot: Extract<Frame, { kind: "agent/snapshot" }>;
  /** How many frames of the log happened. */
  #happened = 1;

  private constructor(log: Log) {
    this.log = log;
    const [first] = log.frames;
    if (first?.kind !== "agent/snapshot") throw new Error("a log begins with a snapshot");
    this.#snapshot = first;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.on("agent/session/open", () => this.snapshot)
      .on("agent/session/read", () => ({ items: [] }))
      .on("agent/model/list", () => ({ models: [], current: null }))
      .on("agent/auth/status", () => ({ providers: [] }));
    const { changes } = log.answers;
    if (changes !== undefined) this.on("agent/changes/list", () => changes);
    this.on("agent/changes/resolve", () => ({ results: [] }));
  }

  static async start(name: string): Promise<WebServer> {
    const made = new WebServer(readLog(name));
    await new Promise<void>((listening) => made.#server.listen(0, "127.0.0.1", listening));
    return made;
  }

  on(method: string, reply: Reply): this {
    this.replies.set(method, reply);
    return this;
  }

  get snapshot(): Snapshot {
    return this.#snapshot.snapshot;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  get firstAddress(): string {
    return `${this.address}?token=${TOKEN}`;
  }

  /** Lets the next frames of the log happen: all of them, or up to the first with an event of that type. */
  play(until?: string): void {
    while (this.#happened < this.log.frames.length) {
      const frame = this.log.frames[this.#happened];
      this.#happened += 1;
      if (frame === undefined) return;
      for (const response of this.#open) send(response, frame);
      if (frame.kind === "agent/events" && frame.events.some((one) => one.type === until)) return;
    }
  }

  /** Cuts every event stream, as a network that changes does. */
  cut(): void {
    for (const response of this.#open) response.destroy();
    this.#open.clear();
  }

  of(method: string): Record<string, unknown>[] {
    return this.asked.flatMap((one) => (one.method === method ? [one.params] : []));
  }

  async stop(): Promise<void> {
    this.cut();
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.address);
    if (url.pathname === "/v1/login") return this.#login(await bodyOf(request), response);
    if (url.pathname === "/v1/rpc" || url.pathname === "/v1/events") {
      if (!this.isSignedIn) return refuse(response, 401);
      if (url.pathname === "/v1/rpc") return this.#call((await bodyOf(request)) as Asked, response);
      return this.#stream(url, request, response);
    }
    if (url.pathname.startsWith("/api/")) return this.#api(url, request, response);
    if (url.pathname.startsWith("/v1/blobs/")) return this.#blob(url, request, response);
    const file = url.pathname === "/" ? "index.html" : url.pathname.replace("/assets/", "");
    const path = join(PAGE, file);
    if (!existsSync(path)) return refuse(response, 404);
    serve(path, response);
  }

  async #api({ pathname, search }: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = `${request.method} ${pathname}`;
    const body = request.method === "POST" ? ((await bodyOf(request)) as Record<string, unknown>) : {};
    this.api.push({ route: `${route}${search}`, body });
    const { status = 200, ...answer } = ((await this.replies.get(route)?.(body)) ?? { status: 404 }) as {
      status?: number;
    };
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer));
  }

  /** Stores bytes under their SHA-256, and gives them. */
  async #blob({ pathname }: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const name = pathname.split("/").at(-1) ?? "";
    if (request.method === "GET") {
      const found = this.blobs.get(name);
      if (found === undefined) return refuse(response, 404);
      response.setHeader("content-type", "image/png");
      response.end(found);
      return;
    }
    const bytes = await bytesOf(request);
    const blob = createHash("sha256").update(bytes).digest("hex");
    if (blob !== name) return refuse(response, 400);
    this.blobs.set(blob, bytes);
    response.writeHead(201, { "content-type": "application/json" });
    response.end(JSON.stringify({ blob, mime: "image/png", size: bytes.length }));
  }

  #login(body: unknown, response: ServerResponse): void {
    this.logins.push(body);
    this.isSignedIn ||= (body as { token?: string }).token === TOKEN;
    refuse(response, this.isSignedIn ? 204 : 401);
  }

  async #call({ method, params }: Asked, response: ServerResponse): Promise<void> {
    this.asked.push({ method, params });
    const result = (await (this.replies.get(method) ?? (() => ({})))(params)) as { refused?: object };
    response.setHeader("content-type", "application/json");
    response.setHeader("tiller-role", this.role);
    response.end(JSON.stringify(result.refused ? { error: result.refused } : { result }));
  }

  /** Sends what happened after the cursor of the request, else the snapshot first; then what happens. */
  #stream(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const lastEventId = request.headers["last-event-id"] as string | undefined;
    this.streams.push({ query: url.searchParams, lastEventId });
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write("retry: 30\n\n");
    const cursor = lastEventId ?? url.searchParams.get("after");
    const at = cursor === null ? 0 : Number(cursor.split(".").at(-1));
    if (cursor === null) send(response, this.#snapshot);
    for (const frame of this.log.frames.slice(0, this.#happened))
      if (frame.kind === "agent/events" && frame.to > at) send(response, frame);
    this.#open.add(response);
    request.on("close", () => this.#open.delete(response));
  }
}

function send(response: ServerResponse, frame: Frame): void {
  if (frame.kind === "agent/snapshot") response.write("event: snapshot\n");
  const to = frame.kind === "agent/events" ? frame.to : "seq" in frame ? frame.seq : 0;
  response.write(`id: ${frame.epoch}.${to}\ndata: ${JSON.stringify({ session: frame.session, frame })}\n\n`);
}

function serve(path: string, response: ServerResponse): void {
  const nonce = "bm9uY2U";
  const rules = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    "style-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "img-src 'self' data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  response.setHeader("content-security-policy", rules.join("; "));
  response.setHeader("content-type", TYPES[path.split(".").at(-1) ?? ""] ?? "application/octet-stream");
  const body = readFileSync(path);
  response.end(path.endsWith(".html") ? body.toString("utf8").replaceAll("{{nonce}}", nonce) : body);
}

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status).end();
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  return JSON.parse((await bytesOf(request)).toString("utf8"));
}
