// The rows of the list of MCP servers, and of the tools of one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { failureText, type McpServer, serverText, toolTexts } from "../../src/host/ui/mcp-list.js";

const docs: McpServer = {
  name: "docs",
  origin: "user",
  file: "/c/mcp.json",
  way: "npx docs",
  enabled: true,
};
const about = "workshop 1.2";

test("a row says whether its server is on or off, and how the last test ended", () => {
  assert.deepEqual(serverText(docs), {
    label: "$(pass) docs",
    description: "on · npx docs",
    detail: "your own",
  });
  const off: McpServer = { ...docs, origin: "project", way: "", enabled: false };
  assert.deepEqual(serverText(off), {
    label: "$(circle-slash) docs",
    description: "off",
    detail: "of this folder",
  });
  const tools = ["look", "count"].map((name) => ({ name, description: "" }));
  assert.equal(serverText(docs, { about, tools, problems: [] }).detail, "your own · 2 tools: look, count");
  assert.equal(serverText(docs, { about, tools: [], problems: [] }).detail, "your own · 0 tools");
  assert.equal(serverText(docs, { failure: "it ended" }).detail, "your own · does not work: it ended");
});

test("the text of a server is one line, and no icon of the editor", () => {
  const tools = [{ name: "a\nb", description: "$(pass) safe\u202e\n\nreally" }];
  assert.deepEqual(toolTexts({ about, tools, problems: ["c has no\nvalid schema"] }), [
    { label: "a b", detail: "$ (pass) safe really" },
    { label: "$(warning) c has no valid schema" },
  ]);
  assert.deepEqual(toolTexts({ about, tools: [], problems: [] }), [{ label: "The server offers no tools." }]);
});

test("the reason of a failure stands without the name that the message has", () => {
  assert.equal(
    failureText("tiller mcp: docs does not work: it ended; check it", "docs"),
    "it ended; check it",
  );
  assert.equal(failureText("The Tiller server is not running.", "docs"), "The Tiller server is not running.");
});
