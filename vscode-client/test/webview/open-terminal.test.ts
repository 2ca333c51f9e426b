// A command of the transcript can be typed into a terminal of the editor.

import assert from "node:assert/strict";
import type { AgentEvent } from "../../src/shared/wire.js";
import { AT, panelTest, said } from "./panel-test.js";
import { emptySnapshot, HELLO, type Stage } from "./stage.js";

const COMMAND = "for name in *.py; do\n  python $name\ndone";
const CALL = { at: AT, run: "r1", item: "b", call: "b", name: "bash", title: "$ for name in *.py; do" };
const ENDED = [
  { seq: 1, at: AT, run: "r1", type: "run.started" },
  { seq: 2, at: AT, run: "r1", type: "turn.started", turn: 1 },
  { seq: 3, type: "tool.started", ...CALL },
  { seq: 4, type: "tool.running", ...CALL, input: { command: COMMAND } },
  {
    ...{ seq: 5, type: "tool.ended", ...CALL, status: "ok", durationMs: 5, details: {} },
    content: [{ type: "text", text: "all is well" }],
  },
] as AgentEvent[];

const buttons = (stage: Stage) => stage.page.getByRole("button", { name: "Open in terminal" });

async function open(stage: Stage, rootUri: string, hello: object = {}): Promise<void> {
  const message = emptySnapshot();
  assert.ok(message.type === "snapshot");
  const roots = [{ uri: rootUri, name: "project", primary: true, trusted: true }];
  const snapshot = { ...message.snapshot, roots };
  await stage.play({ ...HELLO, ...hello }, { ...message, snapshot }, said(ENDED));
  await stage.page.locator(".tool-head").first().waitFor();
}

panelTest(
  "the command of a call is opened in a terminal of its folder, with the keyboard as well",
  async (stage) => {
    await open(stage, "file:///home/ada/project");
    await stage.page.locator(".tool-head").focus();
    await stage.page.keyboard.press("Tab");
    await stage.page.keyboard.press("Enter");
    await buttons(stage).click();
    const expected = { type: "openTerminal", command: COMMAND, folder: "file:///home/ada/project" };
    const opened = (await stage.sent()).filter((message) => message.type === "openTerminal");
    assert.deepEqual(opened, [expected, expected]);
  },
);

panelTest("a command of the user has the button too", async (stage) => {
  await open(stage, "file:///home/ada/project");
  const shell = { at: AT, item: "u", command: "git status" };
  await stage.play(
    said([
      { seq: 6, type: "bash.started", ...shell },
      { seq: 7, type: "bash.ended", ...shell, output: "clean", exitCode: 0 },
    ] as unknown as AgentEvent[]),
  );
  await buttons(stage).nth(1).click();
  const opened = (await stage.sent()).filter((message) => message.type === "openTerminal");
  assert.deepEqual(
    opened.map((message) => message.command),
    ["git status"],
  );
});

panelTest("a command of another machine and one in a browser have no terminal", async (stage) => {
  await open(stage, "ssh://host/srv/project");
  assert.equal(await stage.count(buttons(stage)), 0);
  await open(stage, "file:///home/ada/project", { host: "web" });
  assert.equal(await stage.count(buttons(stage)), 0);
});
