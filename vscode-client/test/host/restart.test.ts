import assert from "node:assert/strict";
import { test } from "node:test";
import type { Launch } from "../../src/host/server/find.js";
import type { Programs, Ran } from "../../src/host/server/programs.js";
import { runsGoingOn, stopDaemon } from "../../src/host/server/stop-daemon.js";

const LAUNCH = { command: "/bin/tiller", base: ["-m"], words: [] } as unknown as Launch;

function answering(ran: Partial<Ran>): { programs: Programs; asked: string[][] } {
  const asked: string[][] = [];
  const programs: Programs = {
    find: async () => undefined,
    run: async (command, words) => {
      asked.push([command, ...words]);
      return { code: 0, out: "", err: "", ...ran };
    },
  };
  return { programs, asked };
}

test("the runs of all windows are counted before the process behind them is stopped", async () => {
  const { programs, asked } = answering({ out: '{"running": true, "working": 2}' });
  assert.equal(await runsGoingOn(programs, LAUNCH), 2);
  assert.deepEqual(asked, [["/bin/tiller", "-m", "daemon", "status", "--json"]]);
});

test("where none runs there is nothing to ask about", async () => {
  assert.equal(await runsGoingOn(answering({ code: 1, out: '{"running": false}' }).programs, LAUNCH), 0);
  assert.equal(
    await runsGoingOn(answering({ code: 1, err: "there is none on Windows" }).programs, LAUNCH),
    0,
  );
});

test("runs are cancelled only by force", async () => {
  const { programs, asked } = answering({ out: "stopped\n" });
  assert.equal(await stopDaemon(programs, LAUNCH, { force: false }), "stopped");
  await stopDaemon(programs, LAUNCH, { force: true });
  assert.deepEqual(
    asked.map((words) => words.slice(2)),
    [
      ["daemon", "stop"],
      ["daemon", "stop", "--force"],
    ],
  );
});
