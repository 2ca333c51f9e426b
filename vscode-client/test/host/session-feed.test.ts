import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentError } from "../../src/host/agent/port.js";
import { type FeedNews, SessionFeed } from "../../src/host/agent/session-feed.js";
import { FakePort, frame, settled, snapshot, untilAborted } from "./support/fake-port.js";

function heard(feed: SessionFeed): FeedNews[] {
  const news: FeedNews[] = [];
  feed.news.listen((one) => news.push(one));
  return news;
}

const atOnce = async () => settled();

test("a session is followed from its snapshot on", async () => {
  const port = new FakePort().on("agent/session/open", () => snapshot()).on("agent/subscribe", untilAborted);
  const feed = new SessionFeed(port, atOnce);
  const news = heard(feed);
  await feed.open();
  await settled();
  port.send(frame(5, 6));
  assert.deepEqual(
    news.map((one) => one.kind),
    ["opened", "events"],
  );
  const params = port.asked.find((one) => one.method === "agent/subscribe")?.params;
  assert.deepEqual([params?.["epoch"], params?.["from"]], ["e1", 4]);
  feed.dispose();
});

test("after a hole it is subscribed again from the last that was taken", async () => {
  const port = new FakePort().on("agent/session/open", () => snapshot()).on("agent/subscribe", untilAborted);
  const feed = new SessionFeed(port, atOnce);
  await feed.open();
  await settled();
  port.send(frame(5, 6));
  port.send(frame(9, 9));
  await settled();
  await settled();
  const subscriptions = port.asked.filter((one) => one.method === "agent/subscribe");
  assert.deepEqual(
    subscriptions.map((one) => one.params["from"]),
    [4, 6],
  );
  assert.notEqual(
    subscriptions[0]?.params["partialResultToken"],
    subscriptions[1]?.params["partialResultToken"],
  );
  feed.dispose();
});

test("while the server is exchanged it is tried again, however often", async () => {
  let tries = 0;
  const port = new FakePort().on("agent/session/open", () => snapshot());
  port.on("agent/subscribe", (params, abort) => {
    tries += 1;
    if (tries < 30) throw new AgentError("the daemon was exchanged", -32_802);
    return untilAborted(params, abort);
  });
  const feed = new SessionFeed(port, atOnce);
  const news = heard(feed);
  await feed.open();
  for (let turn = 0; turn < 100; turn += 1) await settled();
  assert.equal(tries, 30);
  assert.deepEqual(
    news.map((one) => one.kind),
    ["opened"],
  );
  feed.dispose();
});

test("a session that is gone gives way to what the server offers", async () => {
  let opened = 0;
  const port = new FakePort().on("agent/session/open", () => {
    opened += 1;
    return snapshot({ session: `s${opened}` });
  });
  port.on("agent/subscribe", (params, abort) =>
    params["session"] === "s1" ? { reason: "closed", last: 4 } : untilAborted(params, abort),
  );
  const feed = new SessionFeed(port, atOnce);
  await feed.open("s1");
  await settled();
  assert.equal(feed.session, "s2");
  feed.dispose();
});

test("a feed that fails and fails says so in the end", async () => {
  const port = new FakePort().on("agent/session/open", () => snapshot());
  port.on("agent/subscribe", () => {
    throw new AgentError("no", -32_603);
  });
  const feed = new SessionFeed(port, atOnce);
  const news = heard(feed);
  await feed.open();
  for (let turn = 0; turn < 50; turn += 1) await settled();
  assert.equal(news.at(-1)?.kind, "lost");
});

test("a past that cannot be read does not hide what goes on", async () => {
  const port = new FakePort().on("agent/session/open", () => snapshot({ history: { cursor: "end" } }));
  port.on("agent/subscribe", untilAborted).on("agent/session/read", () => {
    throw new AgentError("the disk fails", -32_803);
  });
  const feed = new SessionFeed(port, atOnce);
  const news = heard(feed);
  await feed.open();
  assert.deepEqual((await feed.picture())?.items, []);
  assert.deepEqual(
    news.map((one) => one.kind),
    ["opened", "unread"],
  );
  feed.dispose();
});
