// What a user sees while a run goes on and afterwards: progress, failures, lookups, output, links, search.

import assert from "node:assert/strict";
import type { AgentEvent } from "../../src/shared/wire.js";
import { AT, panelTest, said } from "./panel-test.js";
import { emptySnapshot, HELLO, type Stage } from "./stage.js";

type Fields = { type: string; [name: string]: unknown };

/** Numbers events and gives each its time and its run. */
function events(...fields: Fields[]): AgentEvent[] {
  return fields.map((one, index) => ({ seq: index + 2, at: AT, run: "r1", ...one }) as unknown as AgentEvent);
}

const STARTED: Fields[] = [{ type: "run.started" }, { type: "session.state", state: "running" }];

function called(item: string, name: string, input: unknown, text: string, details: unknown = {}): Fields[] {
  const call = { item, call: item, name };
  const title = `${name} ${(input as { path?: string }).path ?? ""}`.trim();
  return [
    { type: "tool.started", ...call, title },
    { type: "tool.running", ...call, title, input },
    { type: "tool.ended", ...call, status: "ok", content: [{ type: "text", text }], details, durationMs: 5 },
  ];
}

function ended(status: string, more: object = {}): Fields {
  const usage = { tokens: { in: 1000, out: 200, cacheRead: 0, cacheWrite: 0, reasoning: 0 } };
  const changes = { files: 0, additions: 0, deletions: 0, unreviewed: 0 };
  return { type: "run.ended", status, usage, cost: null, changes, durationMs: 65_000, ...more };
}

async function play(stage: Stage, ...fields: Fields[]): Promise<void> {
  await stage.play(HELLO, emptySnapshot(), said(events(...fields)));
}

panelTest("a run shows what it does and for how long, from the first moment", async (stage) => {
  const now = Date.now();
  await play(stage, { type: "run.started", at: new Date(now - 75_000).toISOString() }, STARTED[1] as Fields);
  const line = stage.page.locator(".working");
  assert.match(await stage.text(line), /Waiting for the model…/);
  await line.getByText("1 min 1").waitFor();
  await stage.play(
    said([
      { seq: 9, at: AT, run: "r1", type: "thought.started", item: "t" } as AgentEvent,
      { seq: 10, at: AT, run: "r1", type: "thought.delta", item: "t", text: "Hm" } as AgentEvent,
    ]),
  );
  assert.match(await stage.text(line), /Thinking…/);
  await stage.play(
    said([{ ...(ended("completed") as object), seq: 11, at: AT, run: "r1" } as AgentEvent]),
    said([{ seq: 12, at: AT, type: "session.state", state: "idle" } as AgentEvent]),
  );
  assert.equal(await stage.count(line), 0);
  assert.match(await stage.text(stage.page.locator(".run-end")), /Done\s+1 min 5 s · 1\.2k tokens/);
});

panelTest("a command that runs can be stopped by itself", async (stage) => {
  const call = { item: "b1", call: "b1", name: "bash", title: "$ sleep 60" };
  const at = new Date(Date.now() - 9000).toISOString();
  await play(stage, ...STARTED, { type: "tool.running", ...call, at, input: { command: "sleep 60" } });
  assert.match(await stage.text(stage.page.locator(".working")), /Running \$ sleep 60/);
  await stage.page.locator(".tool .took").getByText("9 s").or(stage.page.getByText("10 s")).first().waitFor();
  await stage.page.getByRole("button", { name: "Stop bash" }).click();
  assert.deepEqual(await stage.requests("agent/run/cancel"), [{ scope: "item", item: "b1" }]);
});

panelTest("a failure is one card with its attempts folded, and one line after another try", async (stage) => {
  const retry = (attempt: number) => ({
    type: "retry.started",
    attempt,
    maxAttempts: 3,
    delayMs: 10,
    error: { kind: "ProviderError", message: `overloaded (${attempt})` },
  });
  const error = { kind: "ProviderError", message: "the provider is overloaded" };
  await play(
    stage,
    ...STARTED,
    retry(1),
    retry(2),
    { type: "retry.ended", success: false, attempt: 2, error },
    ended("failed", { error, resumable: true }),
    { type: "session.state", state: "error" },
  );
  assert.equal(await stage.count(stage.page.locator(".mark")), 1);
  const card = stage.page.locator(".mark");
  assert.doesNotMatch(await stage.text(card), /overloaded \(1\)/);
  await card.getByRole("button", { name: "2 earlier attempts failed" }).click();
  assert.match(await stage.text(card), /overloaded \(1\)[\s\S]*overloaded \(2\)/);
  await stage.play(said([{ seq: 40, at: AT, run: "r2", type: "run.started" } as AgentEvent]));
  assert.equal(await stage.count(stage.page.locator(".mark")), 0);
  assert.match(await stage.text(stage.page.locator(".run-end")), /Failed: the provider is overloaded/);
});

panelTest("lookups that follow one another are one line, which unfolds", async (stage) => {
  await play(
    stage,
    ...STARTED,
    ...called("a", "read", { path: "src/a.py" }, "text"),
    ...called("b", "read", { path: "src/b.py", offset: 20 }, "text"),
    ...called("c", "grep", { pattern: "x", path: "src" }, "a.py:3: x = 1\na.py-4- y = 2"),
  );
  const line = stage.page.getByRole("button", { name: "Read 2 files, searched 1 time" });
  assert.equal(await stage.count(stage.page.locator(".tool")), 0);
  await line.click();
  assert.equal(await stage.count(stage.page.locator(".tool")), 3);
  await stage.page.getByRole("button", { name: "Open src/b.py" }).click();
  await stage.page.locator(".tool-head").last().click();
  await stage.page.getByRole("link", { name: "a.py:3" }).click();
  const opened = (await stage.sent()).filter((one) => one.type === "open");
  const line0 = (line: number) => ({ start: { line, character: 0 }, end: { line, character: 0 } });
  assert.deepEqual(
    opened.map(({ uri, range }) => [uri.split("/").slice(-2).join("/"), range]),
    [
      ["src/b.py", line0(19)],
      ["src/a.py", line0(2)],
    ],
  );
});

panelTest(
  "long output shows its end, says what is left out, and hides advice for the model",
  async (stage) => {
    const lines = Array.from({ length: 1600 }, (_, index) => `line ${index + 3401}`).join("\n");
    const details = {
      exit_code: 0,
      full_output: "/tmp/full 100%.txt",
      truncated: true,
      truncation: { total_lines: 5000, output_lines: 1600 },
    };
    const advice = "[Showing lines 3401-5000 of 5000. Full output: /tmp/full.txt]";
    await play(
      stage,
      ...STARTED,
      ...called("b", "bash", { command: "seq" }, `${lines}\n\n${advice}`, details),
    );
    await stage.page.locator(".tool-head").click();
    const text = await stage.text(stage.page.locator(".tool-body"));
    assert.match(text, /line 5000/);
    assert.doesNotMatch(text, /line 3401/);
    assert.doesNotMatch(text, /Showing lines/);
    assert.match(text, /The last 1,600 of 5000 lines are kept here/);
    await stage.page.getByRole("button", { name: "Open the full output" }).click();
    assert.ok(
      (await stage.sent()).some((one) => one.type === "open" && one.uri === "file:///tmp/full%20100%25.txt"),
    );
  },
);

panelTest("a file in a code span opens, other code does not", async (stage) => {
  const content = [{ type: "text", text: "See `shop/cli.py:12` and `x.append`." }];
  await play(stage, { type: "message.ended", item: "m", role: "assistant", content });
  assert.equal(await stage.count(stage.page.locator(".prose a")), 1);
  await stage.page.getByRole("link", { name: "shop/cli.py:12" }).click();
  const opened = (await stage.sent()).find((one) => one.type === "open");
  assert.ok(
    opened?.type === "open" && opened.uri.endsWith("/shop/cli.py") && opened.range?.start.line === 11,
  );
});

panelTest("the conversation is searched, and the menu of thinking opens at the chosen row", async (stage) => {
  const words = (item: string, text: string) => ({
    type: "message.ended",
    item,
    role: "assistant",
    content: [{ type: "text", text }],
  });
  const many = Array.from({ length: 60 }, (_, index) => words(`m${index}`, `Answer ${index}.`));
  await play(stage, ...many);
  await stage.page.keyboard.press("Control+f");
  const field = stage.page.getByRole("searchbox", { name: "Find in conversation" });
  await field.fill("answer 3");
  const bar = stage.page.locator(".find-count");
  assert.match(await stage.text(bar), /1 of 11/);
  await stage.page.locator('.cell[data-key="m3/0"]').waitFor();
  await field.press("Shift+Enter");
  await stage.page.locator('.cell[data-key="m39/0"]').waitFor();
  assert.match(await stage.text(bar), /11 of 11/);
  await field.press("Escape");
  assert.equal(await stage.count(field), 0);

  await stage.page.getByTitle("Thinking effort").click();
  await stage.settled();
  const focused = await stage.page.evaluate(() => document.activeElement?.getAttribute("aria-checked"));
  assert.equal(focused, "true");
});

panelTest("only the message that began a run restores the files to before it", async (stage) => {
  const checkpoint = { checkpoint: "c1", run: "r1", at: AT, files: 1 };
  await stage.answer({ "agent/checkpoint/list": { checkpoints: [checkpoint] } });
  const message = (item: string, text: string) => ({
    type: "message.ended",
    item,
    entry: `entry-${item}`,
    role: "user",
    content: [{ type: "text", text }],
  });
  await play(
    stage,
    message("u1", "Make it blue."),
    { type: "checkpoint.created", checkpoint },
    { ...message("u2", "Rather green."), delivery: "steer" },
  );
  const offered = async (index: number) => {
    const row = stage.page.locator(".user").nth(index);
    await row.hover();
    return await stage.count(row.getByRole("button", { name: "Restore the files to before this message…" }));
  };
  assert.deepEqual([await offered(0), await offered(1)], [1, 0]);
});

panelTest("an earlier message is edited with its picture; nothing goes before it is sent", async (stage) => {
  const picture = { type: "image", mime: "image/png", data: "aGk=" };
  const content = [picture, { type: "text", text: "Make it blue." }];
  await stage.answer({
    "agent/checkpoint/list": { checkpoints: [{ checkpoint: "c1", run: "r1", at: AT, files: 1 }] },
    "agent/checkpoint/restore": { skipped: [], restored: [] },
    "agent/session/navigate": { leaf: null },
  });
  const entry = "e1";
  await play(
    stage,
    { type: "message.ended", item: "u", role: "user", content, entry },
    { type: "checkpoint.created", checkpoint: { checkpoint: "c1", run: "r1", at: AT, files: 1 } },
  );
  const message = stage.page.locator(".user");
  const composer = stage.page.getByRole("combobox", { name: "Prompt" });
  await composer.fill("Half a thought");
  await message.hover();
  await message.getByRole("button", { name: "Edit message" }).click();
  assert.equal(await stage.value(composer), "Make it blue.");
  assert.equal(await stage.count(stage.page.locator(".composer .chip img")), 1);
  await stage.page.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await stage.requests("agent/session/navigate"), []);
  assert.equal(await stage.value(composer), "Half a thought");

  await message.getByRole("button", { name: "Edit message" }).click();
  // What is typed goes in only where the message is already.
  assert.equal(await stage.value(composer), "Make it blue.");
  await composer.fill("Make it green.");
  await composer.press("Enter");
  assert.deepEqual(await stage.requests("agent/session/navigate"), [{ target: entry, summarize: false }]);
  const [sent] = await stage.requests("agent/prompt");
  assert.deepEqual(sent?.["content"], [picture, { type: "text", text: "Make it green." }]);
  assert.equal(await stage.value(composer), "Half a thought");

  await message.getByRole("button", { name: "Edit message" }).click();
  await stage.page.getByRole("checkbox").check();
  await composer.press("Enter");
  const asked = { checkpoint: "c1", scope: "both", onConflict: "skip" };
  assert.deepEqual(await stage.requests("agent/checkpoint/restore"), [asked]);
  assert.equal((await stage.requests("agent/session/navigate")).length, 1);

  // What is refused is still the earlier message, with its picture.
  await stage.answer({ "agent/session/navigate": { refused: { message: "The session is busy." } } });
  const prompts = (await stage.requests("agent/prompt")).length;
  await message.getByRole("button", { name: "Edit message" }).click();
  assert.equal(await stage.value(composer), "Make it blue.");
  await composer.press("Enter");
  await stage.page.getByText("The session is busy.").waitFor();
  assert.equal(await stage.value(composer), "Make it blue.");
  assert.match(await stage.text(stage.page.locator(".composer")), /Editing an earlier message/);
  assert.equal((await stage.requests("agent/prompt")).length, prompts);
});

panelTest("a rejection shows its reason", async (stage) => {
  await stage.answer({ "agent/permission/respond": { status: "recorded" } });
  const options = [
    { id: "yes", kind: "allowOnce", label: "Allow once" },
    { id: "no", kind: "rejectOnce", label: "Reject" },
  ];
  const subject = { type: "command", command: "npm publish", cwd: "file:///w", sandbox: "none" };
  const request = { request: "q1", session: "s", title: "Run npm publish", risk: "high", since: AT };
  await play(stage, ...STARTED, {
    type: "permission.requested",
    request: { ...request, subject, options },
  });
  await stage.page.getByPlaceholder(/Reason/).fill("Not today.");
  await stage.page.getByRole("button", { name: "Reject" }).click();
  await stage.play(
    said([
      { seq: 50, at: AT, type: "permission.resolved", request: "q1", option: "no", by: "me" } as AgentEvent,
    ]),
  );
  const row = await stage.text(stage.page.locator(".aside.refused"));
  assert.match(row.replaceAll(/\s+/g, " "), /You rejected: Run npm publish \(“Not today.”\)/);
});

panelTest("the editor's context is a chip that can be switched off, and stays off", async (stage) => {
  await play(stage);
  const selection = { start: { line: 4, character: 0 }, end: { line: 9, character: 3 } };
  await stage.play({ type: "context", focus: { uri: "file:///w/shop/cart.py", selection } });
  const chip = stage.page.locator(".chip.implicit");
  assert.match(await stage.text(chip), /cart\.py\s*5–10/);
  const composer = stage.page.getByRole("combobox", { name: "Prompt" });
  const say = async (words: string) => {
    await composer.fill(words);
    await composer.press("Enter");
  };
  await say("with");
  await chip.click();
  await say("without");
  const sent = await stage.requests("agent/prompt");
  assert.deepEqual(
    sent.map((one) => one["context"]),
    [undefined, { open: [] }],
  );
  await stage.page.reload();
  await stage.play({ type: "context", focus: { uri: "file:///w/shop/cart.py" } });
  await play(stage);
  await stage.play({ type: "context", focus: { uri: "file:///w/shop/cart.py" } });
  assert.equal(await chip.getAttribute("aria-pressed"), "false");
});

panelTest("@ offers problems, terminal and git, and says when there is nothing", async (stage) => {
  await play(stage);
  await stage.answer({ gather: { blocks: [{ type: "diff", patch: "-a\n+b" }] } });
  const composer = stage.page.getByRole("combobox", { name: "Prompt" });
  await composer.pressSequentially("Explain @gi");
  await stage.page.getByRole("option", { name: /git/ }).click();
  await stage.page.locator(".composer .chip", { hasText: "Diff" }).waitFor();
  await stage.answer({
    gather: { refused: { message: "There are no errors or warnings in the Problems view." } },
  });
  await composer.pressSequentially("@prob");
  await stage.page.getByRole("option", { name: /problems/i }).waitFor();
  await composer.press("Enter");
  await stage.page.getByText("There are no errors or warnings in the Problems view.").waitFor();
  const asked = (await stage.sent()).flatMap((one) => (one.type === "gather" ? [one.what] : []));
  assert.deepEqual(asked, ["git", "problems"]);
});

panelTest("a command keeps its colours, also in the end that is shown of a long output", async (stage) => {
  const lines = Array.from({ length: 60 }, (_, index) => `line ${index}`).join("\n");
  const from = lines.length + 1;
  const details = {
    colors: [
      [from, from + 3, "1;31"],
      [from + 4, from + 8, "38;5;208"],
    ],
  };
  await play(stage, ...STARTED, ...called("b", "bash", { command: "make" }, `${lines}\nred last\n`, details));
  await stage.page.locator(".tool-head").click();
  const red = stage.page.locator(".output .ansi-1");
  await red.waitFor();
  assert.equal(await red.textContent(), "red");
  assert.ok(((await red.getAttribute("class")) ?? "").includes("ansi-bold"));
  assert.match((await stage.page.locator(".output").textContent()) ?? "", /line 59\nred last$/);
});

panelTest("a low window shows the answers of a permission request whole", async (stage) => {
  await stage.page.setViewportSize({ width: 300, height: 420 });
  await stage.playLog("permission", { until: "permission.requested" });
  await stage.play({ type: "context", focus: { uri: "file:///w/a.txt" } });
  const button = stage.page.getByRole("button", { name: "Allow once" });
  const isWhole = await button.evaluate((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const corners = [
      document.elementFromPoint(left + 4, top + 2),
      document.elementFromPoint(right - 4, bottom - 2),
    ];
    return corners.every((one) => element.contains(one));
  });
  assert.ok(isWhole, "a part of the button is hidden");
});

panelTest("costs are shown by day, and an unknown cost is no zero", async (stage) => {
  const sum = { calls: 2, input: 1000, output: 100, cacheRead: 0, cacheWrite: 0 };
  const days = [
    { ...sum, key: "2026-11-27", usd: "0.5", unknown: 0, atMostUsd: "0" },
    { ...sum, key: "2026-11-28", usd: "1.25", unknown: 1, atMostUsd: "0.4" },
  ];
  const total = { ...sum, key: "", calls: 4, usd: "1.75", unknown: 1, atMostUsd: "0.4" };
  await stage.answer({ "agent/costs": { sums: days, total, problems: ["3 rows wait to be written"] } });
  await stage.play(HELLO, emptySnapshot());
  await stage.page.locator("button.meter").click();
  await stage.page.getByRole("button", { name: "Costs by day…" }).click();
  await stage.page.getByText("≥ $1.75 in all").waitFor();
  const rows = stage.page.locator(".cost-day");
  assert.match(await stage.text(rows.first()), /2026-11-28\s+≥ \$1\.25/);
  assert.equal(await stage.count(rows), 2);
  await stage.page
    .getByText("1 call has an unknown cost; those without a known end cost at most $0.40.")
    .waitFor();
  await stage.page.getByText("3 rows wait to be written").waitFor();
  assert.deepEqual(await stage.requests("agent/costs"), [{ by: "day" }]);
});

panelTest("rules are listed by what they do, and one is removed", async (stage) => {
  const rule = { id: "r1", tool: "bash", argvPrefix: ["npm", "test"], verdict: "allow", scope: "project" };
  await stage.answer({ "agent/permission/rules": { rules: [rule] } });
  await play(stage);
  await stage.page.getByTitle("Permission mode").click();
  await stage.page.getByRole("menuitemradio", { name: "Permission rules…" }).click();
  const entry = stage.page.getByRole("region", { name: "Allowed without asking" }).getByRole("listitem");
  assert.match(await stage.text(entry), /npm test …[\s\S]*in this project/);
  await stage.answer({ "agent/permission/rules": { rules: [] } });
  await stage.page.getByRole("button", { name: "Remove the rule for npm test …" }).click();
  await stage.page.getByText("No rules yet.").waitFor();
  assert.deepEqual(await stage.requests("agent/permission/rules"), [{ op: "list" }, { op: "remove", rule }]);
});

panelTest("the model's list of steps stands above the composer until all of it is done", async (stage) => {
  const step = (text: string, status: string) => ({ id: text, text, status });
  const half = [step("Read the build", "done"), step("Mend it", "active")];
  const done = [step("Read the build", "done"), step("Mend it", "cancelled")];
  const first = called("one", "todo", {}, "kept", { todo: half });
  await play(stage, ...STARTED, ...first);
  const strip = stage.page.getByRole("region", { name: "Plan" });
  assert.match(await stage.text(strip), /Mend it\s*1\/2/);
  await strip.getByRole("button").click();
  await strip.getByText("Read the build").waitFor();
  assert.equal(await strip.getByRole("listitem").count(), 2);
  // The row of the call shows the list of that moment.
  await stage.page.locator(".tool-head").click();
  await stage.page.locator(".tool").getByText("Read the build").waitFor();
  assert.equal(await stage.page.locator(".tool .steps li").count(), 2);
  await play(stage, ...STARTED, ...first, ...called("two", "todo", {}, "kept", { todo: done }));
  await strip.waitFor({ state: "hidden" });
});

panelTest(
  "a background command is listed until it ends, with its ports, its output and a stop",
  async (stage) => {
    const command = { id: "bg1", command: "npm run dev", log: "/tmp/out/bg1.log", ports: [] };
    await play(stage, ...STARTED, { type: "background.started", command });
    const strip = stage.page.getByLabel("Background commands");
    await strip.getByText("npm run dev").waitFor();
    await play(
      stage,
      ...STARTED,
      { type: "background.started", command },
      { type: "background.listening", id: "bg1", ports: [5173] },
    );
    await strip.getByRole("link", { name: ":5173" }).click();
    await strip.getByRole("button", { name: "Show its output" }).click();
    const posted = await stage.sent();
    assert.ok(posted.some((one) => one.type === "openLink" && one.url === "http://localhost:5173/"));
    assert.ok(posted.some((one) => one.type === "open" && one.uri === "file:///tmp/out/bg1.log"));
    await strip.getByRole("button", { name: "Stop npm run dev" }).click();
    assert.deepEqual(await stage.requests("agent/background/stop"), [{ id: "bg1" }]);
    await play(
      stage,
      ...STARTED,
      { type: "background.started", command },
      { type: "background.ended", id: "bg1", exitCode: 1, by: "itself" },
    );
    await strip.waitFor({ state: "hidden" });
    await stage.page.getByText("The background command npm run dev ended with exit code 1.").waitFor();
  },
);

panelTest("path, new text and command of a call are shown while they grow", async (stage) => {
  const call = (name: string, partial: object) => [
    { type: "tool.started", item: name, call: name, name, title: name },
    { type: "tool.input.delta", item: name, text: "{", partial },
  ];
  const content = Array.from({ length: 40 }, (_, at) => `const line${at} = "\u{1f642}";`).join("\n");
  const edits = [
    { oldText: "one();", newText: "two();" },
    { oldText: "three();", newText: "fo" },
  ];
  await play(
    stage,
    ...STARTED,
    ...call("write", { path: "src/app.ts", content }),
    ...call("edit", { path: "src/b.ts", edits }),
    ...call("bash", { command: "npm test && \\\n  npm run lin" }),
    ...call("grep", { pattern: "needle", path: "src" }),
    ...call("new_tool", { note: `${"x".repeat(500)} the end` }),
  );
  const cards = stage.page.locator(".tool.asked");
  assert.deepEqual(
    (await cards.locator(".tool-title").allTextContents()).map((one) => one.trim().replace(/\s+/g, " ")),
    ["write src/app.ts", "edit src/b.ts", "npm test && \\ npm run lin", "grep src", "new_tool"],
  );
  const grown = stage.page.getByRole("region", { name: "Changed lines so far" });
  const lines = await grown.nth(0).locator(".line.added .text").allTextContents();
  assert.deepEqual(lines, content.split("\n").slice(-12));
  assert.deepEqual(await grown.nth(1).locator(".line .text").allTextContents(), [
    "one();",
    "two();",
    "three();",
    "fo",
  ]);
  assert.deepEqual(await cards.locator("pre.command").allTextContents(), ["npm test && \\\n  npm run lin"]);
  assert.match(await stage.text(cards.last()), /x the end/);
  await stage.play(
    said([
      { seq: 99, at: AT, run: "r1", type: "tool.input.delta", item: "edit", text: "u" } as AgentEvent,
      {
        ...{ seq: 100, at: AT, run: "r1", type: "tool.input.delta", item: "edit", text: "r();" },
        partial: { path: "src/b.ts", edits: [...edits.slice(0, 1), { ...edits[1], newText: "four();" }] },
      } as AgentEvent,
    ]),
  );
  assert.match(await stage.text(grown.nth(1)), /four\(\);/);
});

panelTest("a plan is read, edited and approved, and a rejected one asks no more", async (stage) => {
  const snapshot = emptySnapshot();
  assert.ok(snapshot.type === "snapshot");
  const config = { ...snapshot.snapshot.config, mode: "plan" as const };
  const markdown = "# Move the parser\n\nInto `parse.py`.";
  const plan = { markdown, steps: [], sha256: "9f86d081884c7d65" };
  const shown = [
    ...STARTED,
    ...called("p", "plan", { markdown }, "shown", { plan }),
    ended("completed"),
    { type: "session.state", state: "idle" },
  ];
  await stage.play(HELLO, emptySnapshot({ config }), said(events(...shown)));
  await stage.page.getByRole("heading", { name: "Move the parser" }).waitFor();
  assert.equal(await stage.count(stage.page.getByRole("button", { name: "Implement the plan" })), 0);
  const answers = stage.page.getByRole("group", { name: "Answer the plan" });
  await answers.getByRole("button", { name: "Edit" }).click();
  const edits = (await stage.sent()).filter((one) => one.type === "editPlan");
  assert.deepEqual(edits, [{ type: "editPlan", sha256: plan.sha256, markdown }]);
  await answers.getByRole("button", { name: "Carry it out" }).click();
  const { sha256 } = plan;
  assert.deepEqual(await stage.requests("agent/plan/respond"), [{ sha256, answer: "approve" }]);
  const rejection = { type: "message.ended", item: "c", role: "custom", customType: "tiller.plan" };
  const content = [{ type: "text", text: "I reject the plan (revision 1)." }];
  await stage.play(
    HELLO,
    emptySnapshot({ config }),
    said(events(...shown, { ...rejection, type: "message.started" }, { ...rejection, content })),
  );
  await answers.waitFor({ state: "hidden" });
});

panelTest("a plan is carried out by one click, in Ask mode", async (stage) => {
  const snapshot = emptySnapshot();
  assert.ok(snapshot.type === "snapshot");
  const config = { ...snapshot.snapshot.config, mode: "plan" as const };
  await stage.play(
    HELLO,
    emptySnapshot({ config }),
    said(events(...STARTED, ended("completed"), { type: "session.state", state: "idle" })),
  );
  await stage.page.getByRole("button", { name: "Implement the plan" }).click();
  assert.deepEqual(await stage.requests("agent/session/configure"), [{ set: { mode: "ask" } }]);
  const content = [{ type: "text", text: "Implement the plan." }];
  assert.deepEqual(await stage.requests("agent/prompt"), [{ content }]);
});

panelTest("what a command prints itself is never taken for advice", async (stage) => {
  const own = "checked\n\n[Showing lines 1-2 of 2. limit reached]";
  await play(stage, ...STARTED, ...called("b", "bash", { command: "./check" }, own, { truncated: false }));
  await stage.page.locator(".tool-head").click();
  assert.match(await stage.text(stage.page.locator(".tool-body")), /limit reached/);
});

panelTest("a match in a folded lookup is unfolded", async (stage) => {
  await play(
    stage,
    ...STARTED,
    ...["a", "b", "c"].flatMap((name) => called(name, "read", { path: `${name}.py` }, `needle ${name}`)),
  );
  assert.equal(await stage.count(stage.page.locator(".tool")), 0);
  await stage.page.keyboard.press("Control+f");
  await stage.page.getByRole("searchbox", { name: "Find in conversation" }).fill("needle b");
  await stage.page.locator(".tool-body", { hasText: "needle b" }).waitFor();
});

panelTest(
  "tasks in the background are listed while they run, with what they do and a stop; a lost one is continued",
  async (stage) => {
    const task = {
      id: "t1",
      session: "s2",
      description: "find the parser",
      preset: "explore",
      state: "running",
      background: true,
      activity: "grep parse",
      turns: 1,
      toolCalls: 1,
      tokens: 900,
      startedMs: 1,
      durationMs: 10,
    };
    await play(stage, ...STARTED, { type: "task.created", task });
    const strip = stage.page.getByLabel("Tasks");
    await strip.getByText("find the parser grep parse").waitFor();
    await strip.getByRole("button", { name: "Stop find the parser" }).click();
    assert.deepEqual(await stage.requests("agent/task/stop"), [{ id: "t1" }]);
    await play(stage, ...STARTED, { type: "task.created", task: { ...task, state: "lost", activity: "" } });
    await strip.getByRole("button", { name: "Continue find the parser" }).click();
    assert.deepEqual(await stage.requests("agent/task/resume"), [{ id: "t1" }]);
    await play(stage, ...STARTED, {
      type: "task.ended",
      task: { ...task, state: "completed" },
      text: "In a.py",
    });
    await strip.waitFor({ state: "hidden" });
  },
);
