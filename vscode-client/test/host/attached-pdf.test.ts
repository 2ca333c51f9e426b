// A PDF of a prompt: read by the server, or sent, and refused with what to do.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentError, type AgentPort } from "../../src/host/agent/port.js";
import { type PdfFile, pdfBlock } from "../../src/host/panel/attached-pdf.js";

const STORED = { blob: "0".repeat(64), mime: "application/pdf", size: 9_000_000 };

class Server {
  readonly asked: unknown[] = [];
  readonly #answer: () => unknown;

  constructor(answer: () => unknown) {
    this.#answer = answer;
  }

  /** Answers as the server would. */
  readonly request = (async (method: string, params: unknown) => {
    this.asked.push([method, params]);
    return this.#answer();
  }) as AgentPort["request"];
}

function pdf(bytes: number, isLocal: boolean): PdfFile {
  return {
    uri: "file:///plans/a%20plan.pdf",
    name: "a plan.pdf",
    isLocal,
    size: async () => bytes,
    read: async () => new Uint8Array(bytes),
  };
}

function refusal(code: number): () => never {
  return () => {
    throw new AgentError("no", code);
  };
}

test("a PDF on this machine is read by the server and named by its hash", async () => {
  const server = new Server(() => STORED);
  assert.deepEqual(await pdfBlock(pdf(9_000_000, true), server), {
    type: "file",
    name: "a plan.pdf",
    ...STORED,
  });
  assert.deepEqual(server.asked, [
    ["agent/blob/store", { uri: "file:///plans/a%20plan.pdf", size: 9_000_000 }],
  ]);
});

test("what the server refuses is not sent in another way", async () => {
  const server = new Server(refusal(-32_602));
  await assert.rejects(pdfBlock(pdf(3, true), server), /^AgentError: no$/);
});

test("a server without the method and a file of another place get the bytes", async () => {
  const sent = { type: "file", name: "a plan.pdf", mime: "application/pdf", data: "AAAA" };
  const older = new Server(refusal(-32_601));
  assert.deepEqual(await pdfBlock(pdf(3, true), older), sent);
  const server = new Server(() => STORED);
  assert.deepEqual(await pdfBlock(pdf(3, false), server), sent);
  assert.deepEqual(server.asked, []);
});

test("a large PDF of another place is refused with what to do", async () => {
  const server = new Server(() => STORED);
  await assert.rejects(
    pdfBlock(pdf(5 * 1024 * 1024 + 1, false), server),
    /a plan\.pdf is larger than 5 MB.*Save it on the disk of this machine and add it again\./,
  );
});
