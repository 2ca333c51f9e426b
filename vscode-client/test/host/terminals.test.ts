// The last command of the terminals, as a prompt can name it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ShellEvents, type TerminalCommand, Terminals } from "../../src/host/panel/terminals.js";

type Started = Parameters<Parameters<NonNullable<ShellEvents["onDidStartTerminalShellExecution"]>>[0]>[0];
type Ended = Parameters<Parameters<NonNullable<ShellEvents["onDidEndTerminalShellExecution"]>>[0]>[0];

async function* printed(...parts: string[]): AsyncIterable<string> {
  yield* parts;
}

test("the last command is kept with the end of its output", async () => {
  let start: (event: Started) => void = () => assert.fail();
  let end: (event: Ended) => void = () => assert.fail();
  const gone: string[] = [];
  const terminals = new Terminals({
    onDidStartTerminalShellExecution: (listener) => {
      start = listener;
      return { dispose: () => gone.push("start") };
    },
    onDidEndTerminalShellExecution: (listener) => {
      end = listener;
      return { dispose: () => gone.push("end") };
    },
  });
  assert.equal(terminals.last, undefined);
  const text = `${"x".repeat(30_000)}red\r\n`;
  const execution = { commandLine: { value: "npm test" }, read: () => printed(text, "done\r\n") };
  start({ execution });
  await new Promise((turn) => setImmediate(turn));
  end({ execution, exitCode: 1 });
  const last = terminals.last as TerminalCommand | undefined;
  assert.equal(last?.command, "npm test");
  assert.equal(last?.exitCode, 1);
  assert.equal(last?.output.length, 20_000);
  assert.ok(last?.output.endsWith("xred\r\ndone\r\n"));
  terminals.dispose();
  assert.deepEqual(gone, ["start", "end"]);
});

test("an editor that tells of no commands has none", () => {
  const terminals = new Terminals({});
  assert.equal(terminals.last, undefined);
  terminals.dispose();
});
