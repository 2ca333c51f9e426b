import assert from "node:assert/strict";
import { test } from "node:test";
import { after, overviewOf } from "../../src/host/agent/overview.js";
import { SessionFeed } from "../../src/host/agent/session-feed.js";
import {
  hunkAt,
  neighbour,
  rejectionQuestion,
  textAfter,
  textBefore,
  waitingFiles,
} from "../../src/host/editor/hunks.js";
import { page } from "../../src/host/panel/html.js";
import { rank } from "../../src/host/panel/rank.js";
import { PanelRequests } from "../../src/host/panel/requests.js";
import { money, statusText } from "../../src/host/ui/status-text.js";
import type { ChangeSet, Hunk } from "../../src/shared/wire.js";
import { FakePort, snapshot, untilAborted } from "./support/fake-port.js";

const at = "2026-11-22T00:00:00.000Z";

function hunk(id: string, from: number, to: number, oldText: string, state: Hunk["state"] = "pending"): Hunk {
  const place = (line: number) => ({ line, character: 0 });
  const after = { start: place(from), end: place(to) };
  return { id, before: after, after, oldText, newText: "", state, toolCall: "" };
}

function set(...files: [string, Hunk[]][]): ChangeSet {
  const listed = files.map(
    ([uri, hunks]) => ({ uri, op: "modify", sha256: {}, state: "onDisk", hunks }) as const,
  );
  return { id: "s", base: "c", files: listed.map((one) => ({ ...one, hunks: [...one.hunks] })) };
}

test("the text before is the text without the hunks, also with other line ends", () => {
  const hunks = [hunk("1", 1, 3, "old\r\n"), hunk("2", 4, 4, "gone\r\n")];
  assert.equal(textBefore("a\r\nnew\r\nnewer\r\nb\r\nc\r\n", hunks), "a\r\nold\r\nb\r\ngone\r\nc\r\n");
  assert.equal(textBefore("added\n", [hunk("1", 0, 1, "")]), "");
});

test("the text after is the text before with the hunks, in the places before them", () => {
  const before = "a\r\nb\r\nc\r\nd\r\n";
  const place = (line: number) => ({ line, character: 0 });
  const made = (from: number, to: number, newText: string) => ({
    ...hunk(newText, 0, 0, ""),
    before: { start: place(from), end: place(to) },
    newText,
  });
  assert.equal(textAfter(before, [made(1, 2, "B\r\nBB\r\n"), made(3, 4, "")]), "a\r\nB\r\nBB\r\nc\r\n");
  assert.equal(textAfter("", [made(0, 0, "new\n")]), "new\n");
});

test("only what waits is a change to go to, file by file and round again", () => {
  const files = waitingFiles(
    set(
      ["file:///b", [hunk("3", 2, 3, "x")]],
      ["file:///a", [hunk("2", 9, 10, "x"), hunk("1", 1, 2, "x"), hunk("0", 0, 1, "x", "accepted")]],
    ),
  );
  const walk = (from: { uri: string; line: number } | undefined, direction: 1 | -1) =>
    neighbour(files, from, direction)?.hunk.id;
  assert.equal(walk(undefined, 1), "1");
  assert.equal(walk({ uri: "file:///a", line: 1 }, 1), "2");
  assert.equal(walk({ uri: "file:///a", line: 9 }, 1), "3");
  assert.equal(walk({ uri: "file:///b", line: 2 }, 1), "1");
  assert.equal(walk({ uri: "file:///a", line: 1 }, -1), "3");
  assert.equal(walk({ uri: "file:///c", line: 0 }, -1), "3");
  assert.equal(hunkAt(files[0], 9)?.id, "2");
  assert.equal(hunkAt(files[0], 5), undefined);
});

test("a place where lines were only taken away can be stood on", () => {
  const [file] = waitingFiles(set(["file:///a", [hunk("1", 4, 4, "gone\n")]]));
  assert.equal(hunkAt(file, 4)?.id, "1");
});

test("the page has no inline script, loads nothing from elsewhere, and escapes what is put in", () => {
  const html = page({
    nonce: "N",
    source: "vscode-webview:",
    script: 'a"><script>',
    style: "b",
    language: "en",
  });
  assert.match(html, /default-src 'none'; script-src 'nonce-N'/);
  assert.doesNotMatch(html, /unsafe|https?:/);
  assert.equal(html.match(/<script/g)?.length, 1);
  assert.doesNotMatch(html.replace(/<script nonce="N"[^>]*><\/script>/, ""), /<script/);
});

test("names that begin with the words come before those that only hold their letters", () => {
  const paths = ["src/panel/rank.ts", "src/run/ask.ts", "docs/rank.md", "a/rankings/b.txt"];
  assert.deepEqual(rank("rank", paths, 3), ["docs/rank.md", "src/panel/rank.ts", "a/rankings/b.txt"]);
  assert.deepEqual(rank("zzz", paths, 3), []);
});

test("the status bar says state, model, context and cost", () => {
  const usage = { ...snapshot().usage, cost: { amount: 0.0123, currency: "USD", estimated: true } };
  const overview = overviewOf(snapshot({ usage }));
  const idle = statusText({ ready: true }, overview);
  assert.deepEqual(
    [idle.text, idle.label],
    ["$(sparkle) Tiller · m · 10 % · $0.012", "Tiller ready, m, 10 %, $0.012"],
  );
  const asking = statusText({ ready: true }, { ...overview, state: "requiresAction" });
  assert.deepEqual([asking.text.startsWith("$(bell-dot) Tiller asks"), asking.colour], [true, "warning"]);
  const none = { ...overview, model: null, context: { ...overview.context, used: 0, size: 0 } };
  const { tooltip } = statusText({ ready: true }, none);
  assert.match(tooltip, /^Model: none\. Choose one in the panel\.$/m);
  assert.doesNotMatch(tooltip, /Context/);
  const broken = statusText({ ready: false, problem: { text: "No Python." } }, overview);
  assert.deepEqual([broken.tooltip, broken.colour], ["No Python.", "error"]);
  assert.equal(money({ amount: 1.5, currency: "EUR" }), "1.50 EUR");
});

test("the small picture follows the events", () => {
  const asked = { request: "p1", session: "s1", run: "r", questions: [], blocking: true };
  const started = { seq: 5, at, type: "run.started", run: "r", model: "lab/m" } as const;
  const question = { seq: 6, at, type: "question.requested", request: asked } as const;
  let now = [started, question].reduce(after, overviewOf(snapshot()));
  assert.deepEqual([now.run, now.pending.map((one) => one.request)], ["r", ["p1"]]);
  now = after(now, { seq: 7, at, type: "question.resolved", request: "p1", by: "Code" });
  assert.deepEqual(now.pending, []);
});

function requests() {
  const port = new FakePort().on("agent/session/open", () => snapshot()).on("agent/subscribe", untilAborted);
  port.on("agent/prompt", (params) => params);
  const feed = new SessionFeed(port);
  return { port, feed, requests: new PanelRequests(port, feed) };
}

test("the panel asks for the session that is shown, and for methods of the list alone", async () => {
  const { feed, requests: panel } = requests();
  await feed.open();
  const said = await panel.answer({
    type: "request",
    id: 1,
    method: "agent/prompt",
    params: { content: [] },
  });
  assert.deepEqual(said, { result: { session: "s1", content: [] } });
  const other = await panel.answer({ type: "request", id: 2, method: "agent/trust" as never, params: {} });
  assert.ok("error" in other && other.error.message.includes("agent/trust"));
  feed.dispose();
});

test("fifty megabytes are refused in one sentence, and nothing is sent", async () => {
  const { port, feed, requests: panel } = requests();
  await feed.open();
  const text = "x".repeat(50 * 1024 * 1024);
  const params = { content: [{ type: "text", text }] };
  const said = await panel.answer({ type: "request", id: 1, method: "agent/prompt", params });
  assert.ok("error" in said && said.error.message.startsWith("This is 50 MB"));
  assert.ok(port.asked.every((one) => one.method !== "agent/prompt"));
  feed.dispose();
});

test("a request before the first session opens it", async () => {
  const { feed, requests: panel } = requests();
  const said = await panel.answer({ type: "request", id: 1, method: "agent/prompt", params: {} });
  assert.deepEqual(said, { result: { session: "s1" } });
  feed.dispose();
});

test("the question before everything is rejected names the files that this deletes", () => {
  const hunk = { id: "h", state: "pending" } as Hunk;
  const kept = { ...hunk, state: "accepted" as const };
  const file = (uri: string, op: string, hunks: Hunk[]) => ({ uri, op, sha256: {}, state: "onDisk", hunks });
  const files = [
    file("file:///w/a.py", "modify", [hunk, kept, hunk]),
    file("file:///w/new%20one.py", "add", [hunk]),
    file("file:///w/kept.py", "add", [kept]),
    file("file:///w/made.png", "add", []),
  ];
  const { question, detail } = rejectionQuestion({ id: "s", base: "s", files } as unknown as ChangeSet);
  assert.equal(question, "Reject 4 changes in 3 files?");
  assert.match(detail, /^This deletes new one\.py, made\.png\. .*checkpoint brings back/);
  const edited = rejectionQuestion({ id: "s", base: "s", files: [files[0]] } as unknown as ChangeSet);
  assert.doesNotMatch(edited.detail, /deletes/);
});
