// How the panel looks: every state as a picture, in three themes and widths, and nothing serious found by axe.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import type { ToPanel } from "../../src/shared/messages.js";
import { REVIEW } from "./a-review.js";
import { CHANGES, ended, given, ITEMS, LOOK, RUNS, told, WRITE } from "./a-task.js";
import { seriousFaults } from "./axe.js";
import { overEdge } from "./over-edge.js";
import { emptySnapshot, HELLO, launch, noBrowser, readLog, Stage } from "./stage.js";
import { THEMES, type ThemeName } from "./themes.js";

const skip = noBrowser() ?? false;
let browser: Browser;
before(async () => {
  if (!skip) browser = await launch();
});
after(() => browser?.close());

type Scene = (stage: Stage) => Promise<unknown>;

const shell = readLog("shell").answers;
const edits = readLog("edits").answers;
const SUM = {
  calls: 12,
  input: 80_000,
  output: 4_100,
  cacheRead: 61_000,
  cacheWrite: 0,
  unknown: 0,
  atMostUsd: "0",
};
const COSTS = {
  sums: [
    { ...SUM, key: "2026-11-25", usd: "4.61" },
    { ...SUM, key: "2026-11-26", usd: "0.0042" },
    { ...SUM, key: "2026-11-27", usd: "2.05", unknown: 2, atMostUsd: "0.8" },
    { ...SUM, key: "2026-11-28", usd: "0" },
  ],
  total: { ...SUM, key: "", calls: 48, usd: "6.6642", unknown: 2, atMostUsd: "0.8" },
  problems: ["3 rows wait to be written"],
};
const LISTS = {
  "agent/model/list": shell["agent/model/list"],
  "agent/changes/list": edits["before"],
  "agent/session/list": {
    sessions: [
      session("1", "Upper case in a.txt", "Write lines 2, 15 and 29 in upper case.", "2026-11-22T03:20:00Z"),
      session("2", "", "Why does the login test fail on Tuesdays only?", "2026-11-21T10:00:00Z"),
      session(
        "3",
        "A plan for the new importer",
        "Read the importer and make a plan",
        "2026-11-02T10:00:00Z",
      ),
    ],
  },
  "agent/session/tree": {
    leaf: "e",
    nodes: [
      node("a", undefined, "user", "Write lines 2, 15 and 29 in upper case."),
      node("b", "a", "assistant", "I change three lines."),
      node("c", "b", "assistant", "The three lines are upper case now.", "first try"),
      node("d", "b", "user", "No, only line 2."),
      node("e", "d", "assistant", "Line 2 is upper case."),
    ],
  },
  "agent/checkpoint/list": {
    checkpoints: [{ checkpoint: "c1", run: "r", at: "2026-11-22T03:20:00Z", files: 1 }],
  },
  "agent/checkpoint/preview": {
    files: [
      {
        uri: "file:///home/ada/project/a.txt",
        status: "agentOnly",
        diff: "@@ -1,3 +1,3 @@\n line 1\n-LINE 2\n+line 2\n line 3\n",
      },
      { uri: "file:///home/ada/project/b.txt", status: "userEdited", why: "you changed it too" },
    ],
  },
  "agent/command/list": {
    commands: [{ name: "review", description: "Look the last commit over", source: "prompt" }],
  },
  "agent/permission/rules": {
    rules: [
      { id: "r1", tool: "bash", argvPrefix: ["npm", "test"], verdict: "allow", scope: "project" },
      { id: "r2", tool: "edit", path: "migrations/**", verdict: "deny", scope: "user" },
    ],
  },
  findFiles: {
    items: ["src/app.py", "src/api/routes.py", "tests/test_app.py"].map((label) => ({
      uri: `file:///${label}`,
      label,
      icon: "file-code",
    })),
  },
};

function session(id: string, title: string, preview: string, at: string): object {
  return {
    session: id,
    ...(title && { title }),
    workspace: "file:///w",
    created: at,
    modified: at,
    messages: 12,
    model: "lab/m",
    preview,
  };
}

function node(
  entry: string,
  parent: string | undefined,
  kind: string,
  preview: string,
  label?: string,
): object {
  return {
    entry,
    ...(parent && { parent }),
    kind,
    preview,
    at: "2026-11-22T03:20:00Z",
    ...(label && { label }),
  };
}

/** Plays a log and goes to a place of the panel. */
const place =
  (name: string): Scene =>
  async (stage) => {
    await stage.playLog("edits", { until: "run.ended" });
    await stage.play({ type: "show", what: name } as ToPanel);
  };

const SCENES: Readonly<Record<string, Scene>> = {
  starting: (stage) =>
    stage.play({ ...HELLO, state: { ready: false, doing: "Installing the server…" } } as ToPanel),
  noPython: (stage) =>
    stage.play({
      ...HELLO,
      state: {
        ready: false,
        problem: {
          text: "Tiller needs Python 3.11 or newer, and found 3.9.2 (/usr/bin/python3). Install a newer one, or name one in the settings.",
          action: { title: "Install Python", command: "tiller.installPython" },
        },
      },
    } as ToPanel),
  empty: (stage) => stage.play(HELLO, emptySnapshot()),
  noModel: (stage) => {
    const snapshot = emptySnapshot();
    assert.ok(snapshot.type === "snapshot");
    const config = { ...snapshot.snapshot.config, model: null };
    return stage.play({ ...HELLO, trusted: false } as ToPanel, emptySnapshot({ config }));
  },
  edits: (stage) => stage.playLog("edits", { until: "run.ended" }),
  thinking: async (stage) => {
    await stage.playLog("thinking");
    await stage.page.locator(".thought .fold").first().click();
    await stage.page.locator(".tool-head").first().click();
    await stage.settled();
  },
  permission: (stage) => stage.playLog("permission", { until: "permission.requested" }),
  question: (stage) => stage.playLog("question", { until: "question.requested" }),
  running: async (stage) => {
    await stage.playLog("steering", { until: "tool.output.delta" });
    const plan = [
      { text: "Look at the build", status: "done" },
      { text: "Run it", status: "active" },
      { text: "Mend what fails", status: "pending" },
    ];
    const at = "2026-01-01T00:00:00Z";
    const session = readLog("steering").frames[0];
    assert.ok(session?.kind === "agent/snapshot");
    const command = { id: "bg1", command: "npm run dev -- --host", log: "/tmp/bg1.log", ports: [5173] };
    const events = [
      { seq: 9000, at, type: "plan.updated", plan },
      { seq: 9001, at, type: "background.started", command },
    ] as never;
    await stage.play({ type: "events", session: session.session, events });
    await stage.page.locator("#composer-text").fill("Use the fast build, and tell me\nwhat it prints.");
    await stage.settled();
  },
  planned: async (stage) => {
    const empty = emptySnapshot();
    assert.ok(empty.type === "snapshot");
    const config = { ...empty.snapshot.config, mode: "plan" as const };
    const markdown =
      "# Move the parser\n\nInto `parse.py`, without a change of what it does:\n\n1. Make the module.\n2. Move the code.";
    const call = {
      run: "r1",
      at: "2026-01-01T00:00:00Z",
      item: "p",
      call: "p",
      name: "plan",
      title: "plan: Move the parser",
    };
    const plan = { markdown, steps: [], sha256: "9f86d081884c7d65" };
    const events = [
      { seq: 2, ...call, type: "tool.started" },
      { seq: 3, ...call, type: "tool.running", input: { markdown } },
      { seq: 4, ...call, type: "tool.ended", status: "ok", content: [], details: { plan }, durationMs: 5 },
    ] as never;
    await stage.play(HELLO, emptySnapshot({ config }), { type: "events", session: empty.session, events });
    await stage.settled();
  },
  tasks: async (stage) => {
    const done = { ...LOOK, state: "completed" } as const;
    const failed = {
      ...LOOK,
      id: "t3",
      item: "c3",
      state: "failed",
      error: "the model is overloaded",
    } as const;
    await stage.play(
      ...[HELLO, emptySnapshot()],
      told([
        ...RUNS,
        ...given(LOOK),
        ...given(WRITE),
        ...ended(done),
        ...given(failed),
        ...ended(failed, ""),
      ]),
      told([{ type: "task.created", task: { ...LOOK, id: "t4", item: "c4", background: true } }], 40),
    );
  },
  task: async (stage) => {
    await stage.play(HELLO, emptySnapshot(), told([...RUNS, ...given(LOOK)]));
    await stage.page.getByRole("button", { name: `Open: ${LOOK.description}` }).click();
    await stage.play({ type: "task", session: LOOK.session, items: ITEMS });
  },
  taskMerged: async (stage) => {
    await stage.answer({
      "agent/task/merge": { written: CHANGES.files.map(({ uri }) => uri), unchanged: [], checkpoint: "k" },
    });
    const done = { ...WRITE, state: "completed" } as const;
    await stage.play(HELLO, emptySnapshot(), told([...RUNS, ...given(WRITE), ...ended(done)]));
    await stage.page.getByRole("button", { name: `Merge: ${WRITE.description}` }).click();
    await stage.settled();
  },
  taskDiscarding: async (stage) => {
    const done = { ...WRITE, state: "completed" } as const;
    await stage.play(HELLO, emptySnapshot(), told([...RUNS, ...given(WRITE), ...ended(done)]));
    await stage.page.getByRole("button", { name: `Discard: ${WRITE.description}` }).click();
    await stage.settled();
  },
  taskChanges: async (stage) => {
    await stage.answer({ "agent/task/changes": CHANGES });
    const done = { ...WRITE, state: "completed" } as const;
    await stage.play(HELLO, emptySnapshot(), told([...RUNS, ...given(WRITE), ...ended(done)]));
    await stage.page.getByRole("button", { name: `Review changes: ${WRITE.description}` }).click();
    await stage.page.getByRole("checkbox", { name: "Merge the change at line 21" }).uncheck();
    await stage.settled();
  },
  stopped: (stage) => stage.playLog("steering"),
  failing: (stage) => stage.playLog("failing"),
  shell: (stage) => stage.playLog("shell"),
  files: async (stage) => {
    await stage.playLog("edits", { until: "run.ended" });
    await stage.page.locator("#composer-text").pressSequentially("Look at @s");
    await stage.page.locator(".offer").first().waitFor();
  },
  meter: async (stage) => {
    await stage.playLog("edits", { until: "run.ended" });
    await stage.page.locator(".meter").click();
    await stage.settled();
  },
  costs: async (stage) => {
    await stage.answer({ "agent/costs": COSTS });
    await stage.playLog("edits", { until: "run.ended" });
    await stage.page.locator(".meter").click();
    await stage.page.getByRole("button", { name: "Costs by day…" }).click();
    await stage.settled();
  },
  modes: async (stage) => {
    await stage.playLog("edits", { until: "run.ended" });
    await stage.page.locator(".picker-button").first().click();
    await stage.settled();
  },
  sessions: place("sessions"),
  tree: place("tree"),
  models: place("models"),
  changes: place("changes"),
  rules: place("rules"),
  composing: async (stage) => {
    await stage.playLog("edits", { until: "run.ended" });
    await stage.play({ type: "context", focus: { uri: "file:///home/ada/project/a.txt" } });
    await stage.page.keyboard.press("Control+f");
    await stage.page.getByRole("searchbox", { name: "Find in conversation" }).fill("line");
    await stage.settled();
  },
  review: async (stage) => {
    await stage.playLog("edits", { until: "run.ended" });
    await stage.play(REVIEW, { type: "show", what: "review" });
  },
  checkpoints: async (stage) => {
    await place("checkpoints")(stage);
    await stage.page.locator(".entry-main").first().click();
    await stage.settled();
  },
};

const themes = Object.keys(THEMES) as ThemeName[];
for (const theme of themes) {
  test(`axe finds nothing serious in any state, ${theme}`, { skip, timeout: 180_000 }, async () => {
    const faults: string[] = [];
    for (const [name, scene] of Object.entries(SCENES)) {
      const stage = await Stage.open(browser, { theme });
      await stage.answer(LISTS);
      await scene(stage);
      await stage.picture(`${name}-${theme}`);
      faults.push(...(await seriousFaults(stage.page)).map((one) => `${name}: ${one}`), ...stage.faults);
      await stage.page.close();
    }
    assert.deepEqual(faults, []);
  });
}

const NARROW = 268;
const WIDTHS = [NARROW, 288, 400, 700];
test(`nothing reaches over the edge at ${WIDTHS.join(", ")} px`, { skip, timeout: 180_000 }, async () => {
  const wide: string[] = [];
  for (const [name, scene] of Object.entries(SCENES)) {
    // Made where there is least room, then the panel is dragged wider.
    const stage = await Stage.open(browser, { width: NARROW, height: 720 });
    await stage.answer(LISTS);
    await scene(stage);
    for (const width of WIDTHS) {
      await stage.page.setViewportSize({ width, height: 720 });
      await stage.settled();
      await stage.picture(`${name}-${width}`);
      wide.push(...(await stage.page.evaluate(overEdge)).map((one) => `${name} at ${width} px: ${one}`));
    }
    await stage.page.close();
  }
  assert.deepEqual(wide, []);
});
