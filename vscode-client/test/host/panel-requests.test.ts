import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SessionFeed } from "../../src/host/agent/session-feed.js";
import { PanelRequests } from "../../src/host/panel/requests.js";
import { PANEL_METHODS } from "../../src/shared/methods.js";
import { FakePort, settled, snapshot, untilAborted } from "./support/fake-port.js";

interface Schema {
  methods: Record<string, { params: { $ref: string } }>;
  $defs: Record<string, { properties: Record<string, unknown> }>;
}

function fieldsOf(schema: Schema, method: string): Set<string> {
  const name = schema.methods[method]?.params.$ref.split("/").at(-1) ?? "";
  return new Set(Object.keys(schema.$defs[name]?.properties ?? {}));
}

test("a request of the panel names its session where the method has that field, and nowhere else", async () => {
  const schema = JSON.parse(readFileSync("../server/tiller_server/lsp/wire/schema.json", "utf8")) as Schema;
  const port = new FakePort().on("agent/session/open", () => snapshot()).on("agent/subscribe", untilAborted);
  for (const method of PANEL_METHODS) if (method !== "agent/session/open") port.on(method, () => ({}));
  const feed = new SessionFeed(port, async () => settled());
  const requests = new PanelRequests(port, feed);
  await feed.open();
  const others = PANEL_METHODS.filter((method) => method !== "agent/session/open");
  for (const method of others) await requests.answer({ type: "request", id: 1, method, params: {} });
  const wrong = others.filter((method) => {
    const params = port.asked.find((one) => one.method === method)?.params;
    return params === undefined || "session" in params !== fieldsOf(schema, method).has("session");
  });
  assert.deepEqual(wrong, []);
  feed.dispose();
});

test("a web page is stored by the server under its name, and a file of the disk is not asked for", async () => {
  const stored = { name: "a (docs.example)", mime: "text/plain", blob: "ab", size: 3 };
  const port = new FakePort().on("agent/blob/store", () => stored);
  const requests = new PanelRequests(port, new SessionFeed(port, async () => settled()));
  assert.deepEqual(await requests.page("https://docs.example/a"), [{ type: "file", ...stored }]);
  await assert.rejects(requests.page("file:///etc/passwd"), /is no URL of a web page/);
  assert.deepEqual(
    port.asked.map((one) => one.params),
    [{ uri: "https://docs.example/a" }],
  );
});
