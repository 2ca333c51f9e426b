import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentError } from "../../src/host/agent/port.js";
import { TaskLinks } from "../../src/host/panel/task-links.js";
import type { ToPanel } from "../../src/shared/messages.js";
import type { Frame } from "../../src/shared/wire.js";
import { FakePort, frame, settled, snapshot, untilAborted } from "./support/fake-port.js";

const SNAPSHOT = snapshot({ session: "s1", history: { cursor: "c" } });
const FIRST: Frame = { kind: "agent/snapshot", session: "s1", epoch: "e1", seq: 4, snapshot: SNAPSHOT };
const ITEMS = [{ kind: "thought", item: "i", text: "Hm" }];

function stage() {
  const port = new FakePort()
    .on("agent/subscribe", untilAborted)
    .on("agent/session/read", () => ({ items: ITEMS, prev: "older" }));
  const links = new TaskLinks(port, () => undefined, settled);
  const posted: ToPanel[] = [];
  const page = {};
  const follow = (isRunning: boolean, session = "s1") =>
    links.follow(page, session, { isRunning }, (message) => posted.push(message));
  const asked = (method: string) => port.asked.filter((one) => one.method === method);
  return { port, links, posted, page, follow, asked };
}

test("a task that runs is followed beside the session in front, which nothing else is opened instead of", async () => {
  const { port, links, posted, follow, asked } = stage();
  follow(true);
  await settled();
  port.send(FIRST);
  await settled();
  const [first] = posted;
  assert.deepEqual(first, {
    ...{ type: "task", session: "s1", items: ITEMS, prev: "older" },
    live: { epoch: "e1", seq: 4, snapshot: SNAPSHOT },
  });
  assert.deepEqual(asked("agent/session/read")[0]?.params, { session: "s1", before: "c", limit: 200 });
  assert.deepEqual(asked("agent/session/open"), []);
  links.dispose();
});

test("after a gap the session of a task is subscribed anew, for a snapshot without a hole", async () => {
  const { port, links, posted, follow, asked } = stage();
  follow(true);
  await settled();
  port.send(FIRST);
  port.send({ kind: "agent/gap", session: "s1", epoch: "e1", from: 5, to: 8 });
  await settled();
  await settled();
  assert.deepEqual(
    asked("agent/subscribe").map((one) => one.params["from"]),
    [undefined, undefined],
  );
  port.send({ ...FIRST, seq: 8, snapshot: { ...SNAPSHOT, seq: 8 } });
  await settled();
  assert.deepEqual(
    posted.map((one) => (one.type === "task" ? one.live?.seq : one.type)),
    [4, 8],
  );
  links.dispose();
});

test("a task that has ended is read, and not loaded for it", async () => {
  const { links, posted, follow, asked } = stage();
  follow(false);
  await settled();
  assert.deepEqual(posted, [{ type: "task", session: "s1", items: ITEMS, prev: "older" }]);
  assert.deepEqual(asked("agent/subscribe"), []);
  links.dispose();
});

test("a session that cannot be read says why", async () => {
  const { port, links, posted, follow } = stage();
  port.on("agent/session/read", () => {
    throw new AgentError("The session is not there.", -32_000);
  });
  follow(false);
  await settled();
  assert.deepEqual(posted, [
    { type: "task", session: "s1", items: [], problem: "The session is not there." },
  ]);
  links.dispose();
});

test("a page that opens another task, or is closed, hears no more of the one before", async () => {
  const { port, links, posted, page, follow } = stage();
  follow(true);
  await settled();
  const [token] = port.tokens.keys();
  follow(false, "s2");
  links.leave(page);
  await settled();
  port.tokens.get(token ?? "")?.(frame(5, 6));
  await settled();
  assert.deepEqual(posted, []);
  assert.equal(port.tokens.size, 0);
});
