// What is used every day beside a conversation: an edit at the cursor, all changes in one editor, a commit message, a tab.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { commit, PYTHON, REPOSITORY, TILLER } from "./support/ground.ts";
import { GREETINGS, SHOUTED, shouting } from "./support/sample.ts";
import { stage } from "./support/stage.ts";
import { until } from "./support/until.ts";

const on = stage("everyday", {
  files: { "greet.py": GREETINGS, "noon.py": "" },
  settings: { sandbox: "off", permission: { mode: "ask" } },
});

test("an instruction at the cursor edits the text, without the panel", async () => {
  const { window, ground } = on;
  await commit(ground);
  await window.openFile("greet.py");
  await window.page.locator('.statusbar-item-label[aria-label^="Tiller ready"]').waitFor();
  await ground.provider.script({ ...shouting, delta_delay_s: 0 }, { text: "All three shout." });
  await window.focusEditor();
  await window.page.keyboard.press("Control+a");
  await window.page.keyboard.press("Control+i");
  await window.answerBox(/^Edit greet\.py, lines 1–/, "make them shout");
  await window.untilEditorText("the edit", (now) => SHOUTED.every((words) => now.includes(words)));
  const asked = (await ground.provider.asked()).at(-1) ?? "";
  assert.match(asked, /make them shout/);
  await window.page.getByText(/^− return f"good morning/).waitFor();
  await window.picture("every-1-inline");
});

test("all changes are in one diff editor", async () => {
  const { window } = on;
  await window.command("Tiller: Open All Changes in One Diff Editor");
  await window.page.locator(".tab", { hasText: "Changes by Tiller" }).waitFor();
  await window.page.locator(".multiDiffEntry, .multi-diff-entry").first().waitFor();
  await window.picture("every-2-all-changes");
});

test("a commit message is written into the box of the Source Control view", async () => {
  const { window, ground } = on;
  await ground.provider.script({ text: "Greetings shout" });
  await window.page.keyboard.press("Control+Shift+G");
  await window.command("Tiller: Generate Commit Message");
  await window.page.locator(".scm-input").getByText("Greetings shout").waitFor();
  const asked = (await ground.provider.asked()).at(-1) ?? "";
  assert.match(asked, /Write a commit message/);
  assert.match(asked, /GOOD MORNING/);
  await window.picture("every-3-commit-message");
  await ground.provider.script({ text: "Another message" });
  await window.command("Tiller: Generate Commit Message");
  await window.page.getByText("Replace the commit message that you have written?").waitFor();
  await window.page.keyboard.press("Escape");
  await window.page.locator(".scm-input").getByText("Greetings shout").waitFor();
});

test("the panel opens in a tab as well, and both show the same", async () => {
  const { window, ground } = on;
  await window.openPanel();
  await window.command("Tiller: Open in Editor Tab");
  await window.panelTab.text("All three shout.").waitFor();
  await ground.provider.script({ text: "Seen in both." });
  await window.panel.say("Who sees this?");
  await Promise.all([
    window.panel.text("Seen in both.").waitFor(),
    window.panelTab.text("Seen in both.").waitFor(),
  ]);
  await window.picture("every-4-tab");
});

test("a chat in the terminal is in the session of the panel, and each shows the run of the other", async () => {
  const { window, ground } = on;
  // The command that runs is drawn once more, above the others.
  const shown = (words: RegExp) => window.page.locator(".xterm-rows").getByText(words).first().waitFor();
  await window.command("Terminal: Create New Terminal");
  await shown(/[#$]/);
  await window.page.locator(".xterm-helper-textarea").last().focus();
  await window.page.keyboard.type(`${TILLER} chat --continue\n`);
  await shown(/The daemon has this session open/);
  await ground.provider.script({ text: "Asked in the terminal." }, { text: "Asked in the panel." });
  await window.page.keyboard.type("who asks\n");
  await window.panel.text("who asks").waitFor();
  await window.panel.text("Asked in the terminal.").waitFor();
  await window.panel.say("And now?");
  await shown(/Asked in the panel\./);
  await window.picture("every-6-terminal");
});

test("the message of the edit shows which files its restore would take back", async () => {
  const { window } = on;
  const frame = window.panel.frame;
  // After a message of the user the end is followed, until they scroll up.
  await window.panel.text("Asked in the panel.").hover();
  await window.page.mouse.wheel(0, -3000);
  await frame
    .getByText(/^Edit greet\.py, lines 1–/)
    .first()
    .hover();
  await frame.getByRole("button", { name: "Restore the files to before this message…" }).first().click();
  await frame.getByText("will be restored").first().waitFor();
  await window.picture("every-7-restore");
});

test("the steps of the model stand above the composer, and its question is answered there", async () => {
  const { window, ground } = on;
  const steps = [
    { text: "Choose the greeting", status: "active" },
    { text: "Write it", status: "pending" },
  ];
  const options = [{ label: "Formal", description: "Good evening" }, { label: "Friendly" }];
  await ground.provider.script(
    {
      text: "First I need to know one thing.",
      tool_calls: [
        { name: "todo", arguments: { items: steps } },
        { name: "ask", arguments: { questions: [{ question: "Which tone?", options }] } },
      ],
    },
    { text: "Friendly it is." },
  );
  await window.openPanel();
  await window.panel.say("Write another greeting.");
  const form = window.panel.frame.getByRole("form", { name: "A question of Tiller" });
  await form.getByText("Which tone?").waitFor();
  await window.panel.text("Choose the greeting").waitFor();
  await window.picture("every-8-asked");
  await form.getByLabel("Friendly").check();
  await form.getByRole("button", { name: "Answer" }).click();
  await window.panel.text("Friendly it is.").waitFor();
  assert.match((await ground.provider.asked()).at(-1) ?? "", /Which tone\?[^"]*Friendly/);
});

test("a plan is edited as a document, carried out, and a server goes on in the background", async () => {
  const { window, ground } = on;
  const { frame } = window.panel;
  const markdown = "# Serve the greetings\n\nOn a port of this machine.";
  const command = "exec python3 -u -m http.server --bind 127.0.0.1 0";
  await ground.provider.script(
    { tool_calls: [{ name: "plan", arguments: { markdown } }] },
    { text: "That is the plan." },
    { tool_calls: [{ name: "bash", arguments: { command, background: true } }] },
    { text: "It is being served." },
  );
  const mode = frame.getByTitle("Permission mode");
  await mode.click();
  await frame.getByRole("menuitemradio", { name: /^Plan/ }).click();
  await mode.getByText("Plan").waitFor({ state: "attached" });
  await window.panel.say("Plan how to serve the greetings.");
  await frame.getByRole("heading", { name: "Serve the greetings" }).waitFor();
  await window.panel.text("That is the plan.").waitFor();
  await window.picture("every-9-plan");
  const answers = frame.getByRole("group", { name: "Answer the plan" });
  await answers.getByRole("button", { name: "Edit" }).click();
  await window.page.locator(".tab.active", { hasText: "Serve the greetings" }).waitFor();
  await window.focusEditor();
  await window.page.keyboard.press("Control+End");
  await window.page.keyboard.type(" And only there.");
  await answers.getByRole("button", { name: "Carry it out" }).click();
  const permission = frame.getByRole("button", { name: /^Allow once/ });
  await permission.click();
  await window.panel.text("It is being served.").waitFor();
  assert.match((await ground.provider.asked()).at(-1) ?? "", /I changed the plan[^"]*And only there\./);
  const strip = frame.getByLabel("Background commands");
  await strip.getByRole("link", { name: /^:\d+$/ }).waitFor();
  await window.picture("every-10-background");
  await strip.getByRole("button", { name: "Show its output" }).click();
  await window.untilEditorText("the output", (text) => text.includes("Serving HTTP"));
  await strip.getByRole("button", { name: /^Stop exec python3/ }).click();
  await strip.waitFor({ state: "hidden" });
});

test("text is completed at the cursor when a key asks for it, and taken with Tab", async () => {
  const { window, ground } = on;
  await window.openFile("noon.py");
  await window.focusEditor();
  await window.page.keyboard.press("Control+End");
  // The editor indents the new line.
  await window.page.keyboard.type("def noon(name):\n");
  await ground.provider.script({ text: 'return f"Good noon, {name}"' });
  await window.page.keyboard.press("Alt+\\");
  await window.page.locator(".ghost-text, .ghost-text-decoration").first().waitFor();
  const asked = (await ground.provider.asked()).at(-1) ?? "";
  assert.match(asked, /def noon\(name\):\\n {4}<\/before>/);
  await window.picture("every-9-completion");
  await window.page.keyboard.press("Tab");
  await window.untilEditorText("the completion", (now) => now.includes("Good noon"));
});

test("a command of the agent is typed into a terminal, and runs when the user presses Enter", async () => {
  const { window, ground } = on;
  const command = "echo first >> ran.txt && echo second >> ran.txt";
  await ground.provider.script(
    { tool_calls: [{ name: "bash", arguments: { command } }] },
    { text: "It has run once." },
  );
  await window.panel.say("Run it.");
  await window.panel.allow();
  await window.panel.text("It has run once.").waitFor();
  const ran = () => readFile(join(ground.folder, "ran.txt"), "utf8");
  assert.equal(await ran(), "first\nsecond\n");
  await window.panel.button("Open in terminal").last().click();
  // The chat in the other terminal shows the command too, but not behind the prompt of a shell.
  await window.page.locator(".xterm-rows > div", { hasText: /demo[#$]\s*echo first/ }).waitFor();
  await window.picture("every-11-open-in-terminal");
  assert.equal(await ran(), "first\nsecond\n");
  await window.page.locator(".xterm-helper-textarea").last().focus();
  await window.page.keyboard.press("Enter");
  await until("the second run", async () => (await ran()) === "first\nsecond\nfirst\nsecond\n");
  const lines = "echo third >> ran.txt\necho fourth >> ran.txt";
  await ground.provider.script(
    { tool_calls: [{ name: "bash", arguments: { command: lines } }] },
    { text: "It has run as well." },
  );
  await window.panel.say("Run these lines.");
  await window.panel.allow();
  await window.panel.text("It has run as well.").waitFor();
  const before = await ran();
  await window.panel.button("Open in terminal").last().click();
  await window.page
    .getByText(/would run each line of the command at once/)
    .first()
    .waitFor();
  assert.equal(await ran(), before);
});

test("an MCP server is added, tested, switched off and on, and removed", async () => {
  const { window, ground } = on;
  const path = join(ground.env["TILLER_CONFIG_DIR"] ?? "", "mcp.json");
  const servers = async () =>
    (JSON.parse(await readFile(path, "utf8").catch(() => "{}")).mcpServers ?? {}) as Record<string, unknown>;
  const row = window.page.locator(".quick-input-list .monaco-list-row", { hasText: "lab" });
  const press = async (name: string) => {
    await row.hover();
    await row.locator(`.action-label[aria-label="${name}"]`).click();
  };
  await window.command("Tiller: MCP Servers…");
  await window.answerBox("MCP Servers", "Add a server");
  await window.answerBox("Add an MCP server: name", "lab");
  const program = join(REPOSITORY, "tests/support/mcp/mcp_servers.py");
  await window.answerBox("Add an MCP server: address", `"${PYTHON}" "${program}"`);
  await window.answerBox("Add an MCP server: network", "Without");
  await until("the server in mcp.json", async () => "lab" in (await servers()));
  await window.command("Tiller: MCP Servers…");
  await row.filter({ hasText: "on · " }).waitFor();
  await press("Test");
  await window.page.locator(".quick-input-title", { hasText: /^MCP server lab: \d+ tools$/ }).waitFor();
  await window.page.locator(".monaco-list-row", { hasText: "Say a word again." }).waitFor();
  await window.picture("every-5-mcp-tools");
  await window.page.keyboard.press("Escape");
  await row.filter({ hasText: /your own · \d+ tools: / }).waitFor();
  await press("Switch Off");
  await row.filter({ hasText: "off · " }).waitFor();
  assert.deepEqual(await servers(), { lab: { command: PYTHON, args: [program], disabled: true } });
  assert.equal(await row.locator('.action-label[aria-label="Test"]').count(), 0);
  await window.picture("every-5-mcp-off");
  await press("Switch On");
  await row.filter({ hasText: "on · " }).waitFor();
  await press("Remove");
  await window.page.locator(".monaco-dialog-box").getByRole("button", { name: "Remove" }).click();
  await row.waitFor({ state: "detached" });
  assert.deepEqual(await servers(), {});
  await window.page.keyboard.press("Escape");
});

test("an MCP server that does not work says why and what to check", async () => {
  const { window } = on;
  await window.command("Tiller: MCP Servers…");
  await window.answerBox("MCP Servers", "Add a server");
  await window.answerBox("Add an MCP server: name", "docs");
  await window.answerBox("Add an MCP server: address", "https://docs.invalid/mcp");
  await window.page.getByText("added docs").first().waitFor();
  await window.command("Tiller: MCP Servers…");
  const row = window.page.locator(".quick-input-list .monaco-list-row", { hasText: "docs.invalid" });
  await row.hover();
  await row.locator('.action-label[aria-label="Test"]').click();
  const dialog = window.page.locator(".monaco-dialog-box");
  await dialog.getByText("The MCP server docs does not work.").waitFor();
  await dialog.getByText(/cannot be reached: .*; check its url and headers in /).waitFor();
  await window.picture("every-5-mcp-failure");
  await window.page.keyboard.press("Escape");
  await row.filter({ hasText: "does not work: " }).waitFor();
  await window.picture("every-5-mcp");
  await window.page.keyboard.press("Escape");
});

test("a model server is added by its address and key, and its model answers", async () => {
  const { window, ground } = on;
  await window.command("Tiller: Add a Model Server…");
  await window.answerBox("Add a model server: address", `${ground.provider.origin}/v1`);
  assert.equal(await window.answerBox("Add a model server: key", "sk-of-the-server"), "password");
  const models = window.page.locator(".quick-input-widget:visible .monaco-list-row");
  await models.first().waitFor();
  await window.picture("every-10-added-server");
  await models.first().click();
  await ground.provider.script({ text: "Here is the added server." });
  await window.panel.say("Who answers?");
  await window.panel.text("Here is the added server.").waitFor();
  // "Bearer " and the key.
  assert.equal((await ground.provider.headers())["authorization"], "<23 characters>");
});
