// The built panel in a real browser: what a user sees, decides and hears.

import assert from "node:assert/strict";
import type { Locator } from "playwright-core";
import type { ToPanel } from "../../src/shared/messages.js";
import type { AgentEvent } from "../../src/shared/wire.js";
import { REVIEW } from "./a-review.js";
import { AT, panelTest, said } from "./panel-test.js";
import { emptySnapshot, HELLO, readLog, type Stage } from "./stage.js";

panelTest("an empty session says what can be done", async (stage) => {
  await stage.play(HELLO, emptySnapshot());
  assert.match(await stage.text(stage.page.locator(".welcome")), /What do you want to build or fix/);
  await stage.page.locator(".idea").first().click();
  assert.match(await stage.value(stage.page.locator("#composer-text")), /^Explain/);
});

panelTest("a session without a model offers those that need no key, and no other", async (stage) => {
  const model = (provider: string, name: string) => ({
    ...{ model: `${provider}/${name}`, name, provider, contextWindow: 0, maxTokens: 4096 },
    ...{ thinking: ["off"], images: false, auth: "ok" },
  });
  await stage.answer({
    "agent/model/list": { models: [model("ollama", "qwen3:8b"), model("amazon", "paid")], current: null },
    "agent/auth/status": {
      providers: [
        { provider: "ollama", name: "Ollama", state: "ok", source: "none is needed" },
        { provider: "amazon", name: "Amazon", state: "ok", source: "the account of the machine" },
      ],
    },
  });
  const empty = emptySnapshot();
  if (empty.type !== "snapshot") throw new Error("not a snapshot");
  const config = { ...empty.snapshot.config, model: null };
  await stage.play(HELLO, { ...empty, snapshot: { ...empty.snapshot, config } });
  const offers = stage.page.locator(".local-models button");
  assert.deepEqual(await offers.allInnerTexts(), ["Use qwen3:8b (Ollama)"]);
  await offers.click();
  await stage.settled();
  const asked = await stage.requests("agent/session/configure");
  assert.deepEqual(asked, [{ set: { model: "ollama/qwen3:8b" } }]);
});

panelTest(
  "without a server or a key the embedded rules are offered, and nothing is cut off",
  async (stage) => {
    const name = "Repair (rule-based, not a language model)";
    const rules = {
      ...{ model: "embedded/repair", name, provider: "embedded", contextWindow: 0, maxTokens: 4096 },
      ...{ thinking: ["off"], images: false, auth: "ok" },
    };
    await stage.answer({
      "agent/model/list": { models: [rules], current: null },
      "agent/auth/status": { providers: [] },
    });
    await stage.page.setViewportSize({ width: 290, height: 720 });
    const empty = emptySnapshot();
    if (empty.type !== "snapshot") throw new Error("not a snapshot");
    const config = { ...empty.snapshot.config, model: null };
    await stage.play(HELLO, { ...empty, snapshot: { ...empty.snapshot, config } });
    for (const menu of ["Model: none", "Permission mode"]) {
      await stage.page.getByTitle(menu).click();
      await stage.settled();
      assert.deepEqual(await cutOff(stage.page.locator(".menu-label, .menu-detail")), []);
    }
    await stage.page.keyboard.press("Escape");
    await stage.page.getByRole("button", { name: "Use Repair" }).click();
    await stage.settled();
    const asked = await stage.requests("agent/session/configure");
    assert.deepEqual(asked, [{ set: { model: "embedded/repair" } }]);
  },
);

/** Returns the texts that are wider than their place or than the menu around them. */
function cutOff(words: Locator): Promise<string[]> {
  return words.evaluateAll((all) =>
    all
      .filter((one) => {
        const menu = one.closest(".menu")?.getBoundingClientRect();
        return (
          one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > (menu?.right ?? 0)
        );
      })
      .map((one) => one.textContent ?? ""),
  );
}

panelTest("a session in front shows which others need an answer, and opens them", async (stage) => {
  await stage.play(HELLO, emptySnapshot(), {
    type: "others",
    sessions: [
      { session: "s7", title: "Fix the tests", doing: "asks", unreviewed: 0 },
      { session: "s8", doing: "asks", unreviewed: 0 },
      { session: "s9", doing: "works", unreviewed: 0 },
    ],
  });
  await stage.settled();
  const asking = stage.page.getByRole("region", { name: "Other sessions that need an answer" });
  const names = await asking.getByRole("button").allInnerTexts();
  assert.deepEqual(
    names.map((one) => one.trim()),
    ["Needs your answer: “Fix the tests”", "Needs your answer: an untitled session"],
  );
  await asking.getByText("Fix the tests").click();
  await stage.settled();
  assert.deepEqual(await stage.requests("agent/session/open"), [{ session: "s7" }]);
});

panelTest("a finding leads to its place, and what it suggests is asked for", async (stage) => {
  await stage.play(HELLO, emptySnapshot(), REVIEW, { type: "show", what: "review" });
  const cards = stage.page.locator(".finding");
  assert.equal(await stage.count(cards), 3);
  assert.equal(await stage.count(stage.page.locator(".finding b")), 0);
  await cards.first().getByRole("button", { name: "parser.ts:41–43" }).click();
  const apply = stage.page.getByRole("button", { name: "Apply suggestion" });
  assert.equal(await stage.count(apply), 1);
  await apply.click();
  const [first] = REVIEW.result?.findings ?? [];
  assert.ok(first);
  const { range, message } = first.diagnostic;
  const sent = (await stage.sent()).filter((one) => one.type === "open" || one.type === "command");
  assert.deepEqual(sent, [
    { type: "open", uri: first.uri, range },
    { type: "command", command: "tiller.applySuggestion", args: [first.uri, range, message] },
  ]);
});

panelTest("one hunk of three is rejected", async (stage) => {
  const log = readLog("edits");
  await stage.answer({
    "agent/changes/list": log.answers["before"],
    "agent/changes/resolve": log.answers["resolved"],
  });
  await stage.playLog("edits", { until: "run.ended" });
  assert.equal(await stage.count(stage.page.locator(".hunk.pending")), 3);
  await stage.answer({ "agent/changes/list": log.answers["changes"] });
  await stage.page.locator(".hunk .reject").nth(1).click();
  await stage.settled();
  const [asked] = await stage.requests("agent/changes/resolve");
  const changes = log.answers["before"] as { files: { hunks: { id: string }[] }[] };
  assert.deepEqual(asked, { items: [{ hunk: changes.files[0]?.hunks[1]?.id, action: "reject" }] });
  assert.equal(await stage.count(stage.page.locator(".hunk.pending")), 2);
});

panelTest("the list says which sessions ask, work, and have changes to review", async (stage) => {
  const info = (session: string) => ({ session, preview: `words of ${session}`, modified: AT, messages: 1 });
  await stage.answer({ "agent/session/list": { sessions: ["s7", "s8", "s9"].map(info) } });
  await stage.play(HELLO, emptySnapshot(), {
    type: "others",
    sessions: [
      { session: "s7", doing: "asks", unreviewed: 0 },
      { session: "s8", doing: "works", unreviewed: 2 },
    ],
    unread: ["s9"],
  });
  await stage.play({ type: "show", what: "sessions" });
  await stage.settled();
  const titles = await stage.page.locator(".entry-title").allInnerTexts();
  assert.deepEqual(
    titles.map((one) => one.replaceAll(/\s+/g, " ").trim()),
    ["needs your answer words of s7", "working 2 changes to review words of s8", "finished words of s9"],
  );
});

panelTest("changes of other sessions are counted, and Keep says which it keeps", async (stage) => {
  const log = readLog("edits");
  await stage.answer({
    "agent/changes/list": log.answers["before"],
    "agent/changes/resolve": { results: [] },
  });
  await stage.playLog("edits", { until: "run.ended" });
  const strip = stage.page.locator(".strip.changes");
  const names = async () => (await strip.getByRole("button").allInnerTexts()).map((one) => one.trim());
  assert.deepEqual((await names()).slice(1), ["Keep all", "Reject all"]);
  await stage.play({
    type: "others",
    sessions: [
      { session: "s7", title: "Fix the tests", doing: "idle", unreviewed: 2 },
      { session: "s8", doing: "works", unreviewed: 0 },
      { session: "s9", doing: "works", unreviewed: 1 },
    ],
  });
  await stage.settled();
  assert.deepEqual((await names()).slice(1), [
    "Keep 3",
    "Reject 3",
    "2 changes in “Fix the tests”",
    "1 change in an untitled session",
  ]);
  await strip.getByTitle("Keep the 3 changes of this session").click();
  await stage.settled();
  const set = log.answers["before"] as { id: string };
  assert.deepEqual(await stage.requests("agent/changes/resolve"), [
    { items: [{ changeSet: set.id, action: "accept" }] },
  ]);
  await strip.getByText("Fix the tests").click();
  await stage.settled();
  assert.deepEqual(await stage.requests("agent/session/open"), [{ session: "s7" }]);
});

panelTest("a session without changes of its own shows those of others", async (stage) => {
  await stage.play(HELLO, emptySnapshot(), {
    type: "others",
    sessions: ["s4", "s5", "s6", "s7", "s8"].map((session) => ({ session, doing: "idle", unreviewed: 1 })),
  });
  await stage.settled();
  const strip = stage.page.locator(".strip.changes");
  assert.equal(await stage.count(strip.getByRole("button")), 4);
  assert.match(await stage.text(strip), /and in 2 more sessions/);
  assert.doesNotMatch(await stage.text(strip), /Keep/);
});

panelTest("a mode is chosen by the command that asks where the user's settings allow less", async (stage) => {
  await stage.play(HELLO, emptySnapshot());
  await stage.page.locator(".picker-button").first().click();
  await stage.page.getByRole("menuitemradio", { name: /^Full access/ }).click();
  await stage.settled();
  assert.deepEqual(await stage.requests("agent/session/configure"), []);
  const sent = (await stage.sent()).filter((one) => one.type === "command");
  assert.deepEqual(sent, [{ type: "command", command: "tiller.chooseMode", args: ["yolo"] }]);
});

panelTest("an edit that the editor refused is no rejection", async (stage) => {
  const documents = [{ uri: "file:///w/cart.py", status: "refused", saved: false, why: "two editors" }];
  const refused = { seq: 3, at: AT, run: "r", type: "edit.rejected", edit: "e", documents } as AgentEvent;
  const text = "cart.py is open twice. Save it.";
  const told = { seq: 2, at: AT, type: "notice", level: "warning", text } as AgentEvent;
  await stage.play(HELLO, emptySnapshot(), said([told, refused]));
  assert.match(await stage.text(stage.page.locator(".aside.rejected")), /cart\.py\s+was not changed\s*$/);
  assert.equal(
    (await stage.text(stage.page.locator(".mark-words"))).trim(),
    "cart.py is open twice. Save it.",
  );
});

panelTest("of a call that failed it is shown what happened, not the advice for the model", async (stage) => {
  const told = "Permission denied: /w/a (EACCES).";
  const item = { run: "r", turn: "t", item: "i", call: "c", name: "write" };
  await stage.play(
    HELLO,
    emptySnapshot(),
    said([
      { seq: 2, at: AT, type: "tool.started", ...item, title: "write a", input: { path: "a" } } as AgentEvent,
      {
        ...{ seq: 3, at: AT, type: "tool.ended", ...item, status: "error", details: { happened: told } },
        content: [
          { type: "text", text: `${told} Use another file, or ask the user to change its permissions.` },
        ],
      } as AgentEvent,
    ]),
  );
  const row = stage.page.locator(".tool").first();
  assert.match(await stage.text(row), /EACCES/);
  assert.doesNotMatch(await stage.text(row), /ask the user/);
});

panelTest("a tool of an extension is drawn by the views of its call and its result", async (stage) => {
  const item = { run: "r", turn: "t", item: "i", call: "c", name: "find" };
  const view = { kind: "table", head: ["Name"], rows: [["Ada"]] };
  const call_view = { kind: "text", text: "Looking for ada", style: "plain" };
  const events = [
    { seq: 2, at: AT, type: "tool.started", ...item, title: "Directory", input: { name: "raw" } },
    { seq: 3, at: AT, type: "tool.running", ...item, input: { name: "raw" }, details: { call_view } },
    {
      ...{ seq: 4, at: AT, type: "tool.ended", ...item, status: "ok", details: { view, call_view } },
      content: [{ type: "text", text: "text for the model" }],
    },
  ];
  await stage.play(HELLO, emptySnapshot(), said(events.slice(0, 2) as AgentEvent[]));
  const row = stage.page.locator(".tool").first();
  assert.match(await stage.text(row), /Looking for ada/);
  await stage.play(said(events.slice(2) as AgentEvent[]));
  await row.locator("summary, button").first().click();
  const text = await stage.text(row);
  assert.match(text, /Directory/);
  assert.match(text, /Looking for ada/);
  assert.doesNotMatch(text, /text for the model/);
  assert.equal(await stage.text(row.locator("td")), "Ada");
});

panelTest("rejecting everything is left to the command that asks first", async (stage) => {
  const log = readLog("edits");
  await stage.answer({ "agent/changes/list": log.answers["before"] });
  await stage.playLog("edits", { until: "run.ended" });
  await stage.page.locator(".strip.changes .reject").click();
  await stage.play({ type: "show", what: "changes" });
  await stage.page.getByRole("button", { name: "Reject all", exact: true }).click();
  await stage.settled();
  assert.deepEqual(await stage.requests("agent/changes/resolve"), []);
  const sent = (await stage.sent()).filter((one) => one.type === "command");
  assert.deepEqual(
    sent.map((one) => one.type === "command" && one.command),
    ["tiller.rejectAll", "tiller.rejectAll"],
  );
});

panelTest("an undone rejection is not called an undone edit", async (stage) => {
  const documents = [
    { uri: "file:///w/a.py", status: "undone", saved: false, why: "the rejection was undone in the editor" },
  ];
  const undone = { seq: 2, at: AT, type: "edit.undone", edit: "e", documents } as AgentEvent;
  await stage.play(HELLO, emptySnapshot(), said([undone]));
  const row = await stage.text(stage.page.locator(".aside.undone"));
  assert.match(row, /a\.py\s+the rejection was undone in the editor/);
});

panelTest("a permission is answered with the keyboard alone, with a word along", async (stage) => {
  await stage.answer({ "agent/permission/respond": { status: "recorded" } });
  await stage.playLog("permission", { until: "permission.requested" });
  await stage.page.locator("#composer-text").focus();
  for (let tabs = 0; tabs < 40; tabs++) {
    if ((await stage.page.evaluate(() => document.activeElement?.textContent?.trim())) === "Allow once")
      break;
    await stage.page.keyboard.press("Shift+Tab");
  }
  await stage.page.locator(".note input").fill("only this one");
  await stage.page.keyboard.press("Shift+Tab");
  await stage.page.keyboard.press("Shift+Tab");
  await stage.page.keyboard.press("Enter");
  await stage.settled();
  const [answer] = await stage.requests("agent/permission/respond");
  assert.equal(answer?.["option"], "allowOnce");
  assert.equal(answer?.["note"], "only this one");
});

panelTest("a permission is said to screen readers, and shown at the end of the transcript", async (stage) => {
  await stage.playLog("permission", { until: "permission.requested" });
  assert.match(
    await stage.text(stage.page.locator("[aria-live=polite]")),
    /Tiller needs your permission: Run touch/,
  );
});

panelTest("a file that a command changed is opened from its row", async (stage) => {
  await stage.playLog("permission");
  await stage.page.locator(".tool-head").first().click();
  await stage.page.getByRole("button", { name: "made.txt", exact: true }).click();
  const uris = (await stage.sent()).flatMap((one) => (one.type === "open" ? [one.uri] : []));
  assert.deepEqual(uris, ["file:///home/ada/project/made.txt"]);
});

panelTest("a page that is loaded again shows the same session", async (stage) => {
  await stage.playLog("edits");
  const before = await stage.text(stage.page.locator("#timeline"));
  await stage.page.reload();
  await stage.playLog("edits");
  assert.equal(await stage.text(stage.page.locator("#timeline")), before);
});

panelTest("a failed run says what to do", async (stage) => {
  await stage.playLog("failing", { until: "compaction.started" });
  await stage.page
    .locator(".mark.error", { hasText: "invalid api key" })
    .getByRole("button", { name: "Sign in" })
    .click();
  assert.ok((await stage.sent()).some((one) => one.type === "command" && one.command === "tiller.signIn"));
});

panelTest("without Python it is said what to do", async (stage) => {
  const problem = {
    text: "Tiller needs Python 3.11 or newer.",
    action: { title: "Get Python", command: "tiller.installPython" },
  } as const;
  await stage.play({ ...HELLO, state: { ready: false, problem } } as ToPanel);
  await stage.page.getByRole("button", { name: "Get Python" }).click();
  assert.ok(
    (await stage.sent()).some((one) => one.type === "command" && one.command === "tiller.installPython"),
  );
});

panelTest("Restricted Mode is said, and trust is one press away", async (stage) => {
  await stage.play({ ...HELLO, trusted: false } as ToPanel, emptySnapshot());
  await stage.page.getByRole("button", { name: "Trust" }).click();
  assert.ok((await stage.sent()).some((one) => one.type === "trust"));
});

panelTest("a question of an extension is answered", async (stage) => {
  await stage.answer({ "agent/question/respond": { status: "recorded" } });
  await stage.playLog("question", { until: "question.requested" });
  await stage.page.getByRole("radio", { name: "Green" }).check();
  await stage.page.getByRole("button", { name: "Answer" }).click();
  await stage.settled();
  const [answer] = await stage.requests("agent/question/respond");
  assert.deepEqual(answer?.["answers"], { answer: "1" });
});

/** Gives the space between neighbours in the transcript, in pixels: too much, or too little, is a stale measurement. */
async function gaps(stage: Stage): Promise<number[]> {
  return stage.page.locator(".cell").evaluateAll((cells) =>
    cells.flatMap((cell, index) => {
      const next = cells[index + 1];
      return next ? [Math.round(next.getBoundingClientRect().top - cell.getBoundingClientRect().bottom)] : [];
    }),
  );
}

panelTest("rows stand one below the other, also after they grew, shrank or were folded", async (stage) => {
  const log = readLog("edits");
  // First the patch of the tool is shown, which is higher than the hunks that come later.
  await stage.playLog("edits", { until: "run.ended" });
  assert.deepEqual([...new Set(await gaps(stage))], [0]);
  await stage.answer({ "agent/changes/list": log.answers["before"] });
  const session = log.frames[0]?.session ?? "";
  const event = {
    seq: 8000,
    at: AT,
    type: "changes.updated",
    files: 1,
    additions: 3,
    deletions: 3,
    unreviewed: 3,
  };
  await stage.play({ type: "events", session, events: [event as AgentEvent] });
  await stage.page.locator(".hunk").first().waitFor();
  await stage.settled();
  assert.deepEqual([...new Set(await gaps(stage))], [0]);
  for (const head of [".tool-head", ".thought .fold"]) {
    await stage.page.locator(head).first().click();
    await stage.settled();
    assert.deepEqual([...new Set(await gaps(stage))], [0]);
  }
  await stage.page.setViewportSize({ width: 280, height: 700 });
  await stage.settled();
  assert.deepEqual([...new Set(await gaps(stage))], [0]);
});

panelTest("the end stays in sight while answers come, unless the user looks further up", async (stage) => {
  await stage.page.setViewportSize({ width: 400, height: 500 });
  await stage.playLog("edits");
  const missing = () =>
    stage.page
      .locator("#timeline")
      .evaluate((list) => Math.round(list.scrollHeight - list.clientHeight - list.scrollTop));
  assert.equal(await missing(), 0);
  await stage.page.locator("#timeline").hover();
  await stage.page.mouse.wheel(0, -200);
  await stage.settled();
  const session = readLog("edits").frames[0]?.session ?? "";
  const more = {
    seq: 9000,
    at: AT,
    type: "message.ended",
    item: "x",
    role: "assistant",
    content: [{ type: "text", text: "More.\n\n".repeat(40) }],
  };
  await stage.play({ type: "events", session, events: [more as AgentEvent] });
  assert.ok((await missing()) > 200);
  await stage.page.locator(".to-end").click();
  await stage.settled();
  assert.equal(await missing(), 0);
  await stage.page.locator("#timeline").hover();
  await stage.page.mouse.wheel(0, -400);
  await stage.settled();
  assert.ok((await missing()) > 200);
  // Who sends a message wants to see what becomes of it.
  await stage.page.getByRole("combobox", { name: "Prompt" }).fill("And now?");
  await stage.page.keyboard.press("Enter");
  await stage.settled();
  assert.equal(await missing(), 0);
});
