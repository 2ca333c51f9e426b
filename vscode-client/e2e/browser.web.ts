// `tiller web` before a browser: the real server, daemon and model script; the page that `npm run web` built.
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { seriousFaults } from "../test/webview/axe.ts";
import { ARTEFACTS, type Ground, keepLogs, leave, makeGround, TILLER } from "./support/ground.ts";
import { end, killAll, run, start } from "./support/processes.ts";
import { PATIENCE_MS, until } from "./support/until.ts";

const CHROMIUM = process.env["TILLER_E2E_CHROMIUM"] ?? "/usr/bin/chromium";
const LOG = join(ARTEFACTS, "web.log");
const PHONE = { width: 390, height: 844 };
const BEFORE =
  "def total(items):\n    return sum(items)\n\n\ndef mean(items):\n    return total(items) / len(items)\n";
const EDITS = [
  { oldText: "    return sum(items)", newText: "    return round(sum(items), 2)" },
  { oldText: "total(items) / len(items)", newText: "total(items) / max(1, len(items))" },
];

let ground: Ground;
let web: ChildProcess;
let browser: Browser;
let page: Page;
const faults: string[] = [];
/** What axe calls serious. */
const barriers: string[] = [];

/** Gives the address that a program printed into the log, the newest first. */
const printed = () =>
  until("the address is printed", async () => {
    const text = await readFile(LOG, "utf8").catch(() => "");
    return text.match(/http:\/\/127\.0\.0\.1:\d+\/\?token=\S+/g)?.at(-1);
  });

before(async () => {
  ground = await makeGround({
    files: { "totals.py": BEFORE },
    settings: { permission: { mode: "ask" }, sandbox: "off" },
  });
  const argv = [TILLER, "web", "--no-open", "--port", "0"] as const;
  web = start({ argv: [...argv], env: ground.env, cwd: ground.folder, log: LOG });
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  page = await opened({ width: 1280, height: 800 });
});
afterEach(async (context) => {
  if ("passed" in context && !context.passed) await picture("failed");
});
after(async () => {
  await browser?.close();
  await end(web);
  await keepLogs(ground, "web-daemon");
  await leave(ground);
});

async function opened(viewport: { width: number; height: number }): Promise<Page> {
  const context = await browser.newContext({ viewport, colorScheme: "dark" });
  context.setDefaultTimeout(PATIENCE_MS);
  const made = await context.newPage();
  made.on("pageerror", (error) => faults.push(String(error)));
  made.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  return made;
}

/** Takes pictures in the dark and in the light, and looks for what keeps somebody from using the page. */
async function picture(name: string, of = page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await of.emulateMedia({ colorScheme });
    await of.screenshot({ path: join(ARTEFACTS, `web-${name}-${colorScheme}.png`) });
    const found = name === "failed" ? [] : await seriousFaults(of);
    barriers.push(...found.map((one) => `${name} (${colorScheme}): ${one}`));
  }
}
/** The words in the conversation; those for screen readers are elsewhere. */
const words = (text: string, of = page) => of.locator(".timeline").getByText(text);
const composer = () => page.locator("#composer-text");
const said = async (of = page) => ((await of.locator(".timeline").textContent()) ?? "").replace(/\s+/g, " ");

async function say(words: string): Promise<void> {
  await composer().fill(words);
  await composer().press("Enter");
}

test("the printed address signs in, and shows a session that can be used", async () => {
  await page.goto(await printed());
  await page.getByText("What do you want to build or fix?").waitFor();
  assert.equal(new URL(page.url()).search, "");
  await picture("1-welcome");
});

test("a prompt is answered, and a command asks first", async () => {
  await ground.provider.script(
    { tool_calls: [{ name: "bash", arguments: { command: "echo made > made.txt" } }] },
    { text: "The file is **made**." },
  );
  await say("Make a file");
  const card = page.locator(".asks");
  await card.waitFor();
  await picture("2-permission");
  await card.getByRole("button", { name: "Allow once" }).click();
  await words("The file is made.").waitFor();
  assert.equal(await readFile(join(ground.folder, "made.txt"), "utf8"), "made\n");
});

test("an edit is reviewed hunk by hunk", async () => {
  await ground.provider.script(
    { tool_calls: [{ name: "read", arguments: { path: "totals.py" } }] },
    { tool_calls: [{ name: "edit", arguments: { path: "totals.py", edits: EDITS } }] },
    { text: "Both are repaired." },
  );
  await say("Repair the totals");
  await words("Both are repaired.").waitFor();
  await page.getByTitle("Keep this change").first().waitFor();
  await picture("3-diff");
  await page.getByRole("button", { name: /^3 changes in 2 files/ }).click();
  await page.locator(".place .hunk").first().waitFor();
  await picture("4-changes");
  const hunk = (text: string) => page.locator(".place .hunk").filter({ hasText: text });
  await hunk("max(1").getByTitle("Reject this change").click();
  await until("the second hunk is taken back", async () => {
    const text = await readFile(join(ground.folder, "totals.py"), "utf8");
    return text.includes("round(sum") && !text.includes("max(1");
  });
  await hunk("round(sum").getByTitle("Keep this change").click();
  await page.getByRole("button", { name: "Keep all" }).first().click();
  await page.getByText("No changes to review in this session.").waitFor();
  await page.getByRole("button", { name: "Back to the conversation" }).click();
});

test("a run is steered, and goes on through a page that is loaded anew in the middle", async () => {
  const slow = { text: "Slowly ".repeat(40), deltas: 40, delta_delay_s: 0.1 };
  await ground.provider.script({ ...slow }, { text: "With the tests." });
  await say("Write a long answer");
  await words("Slowly Slowly").first().waitFor();
  await page.reload();
  await words("Slowly Slowly").first().waitFor();
  await say("Also the tests");
  await picture("5-steering");
  await words("With the tests.").waitFor();
  await page.getByRole("button", { name: "Stop (Escape)" }).waitFor({ state: "detached" });
  const asked = await ground.provider.asked();
  assert.match(asked.at(-1) ?? "", /Also the tests/);
});

test("a daemon that is killed comes back, and nothing is lost or doubled", async () => {
  const before = await said();
  assert.ok((await killAll(ground, /daemon/)) > 0);
  await ground.provider.script({ text: "I am here again." });
  await say("Still there?");
  await words("I am here again.").waitFor();
  const now = await said();
  assert.equal(now.split("With the tests.").length, before.split("With the tests.").length);
  await picture("6-daemon");
});

test("a phone shows the same session, and answers its question", async () => {
  const state = await page.context().storageState();
  const context = await browser.newContext({
    viewport: PHONE,
    colorScheme: "light",
    hasTouch: true,
    isMobile: true,
    storageState: state,
  });
  const phone = await context.newPage();
  await phone.goto(page.url());
  await words("I am here again.", phone)
    .waitFor()
    .finally(() => picture("7-phone", phone));
  await ground.provider.script(
    { tool_calls: [{ name: "bash", arguments: { command: "echo phone > phone.txt" } }] },
    { text: "Done from the phone." },
  );
  await phone.locator("#composer-text").fill("One more");
  await phone.getByRole("button", { name: "Send (Enter)" }).tap();
  await phone.locator(".asks").waitFor();
  await picture("7-phone-permission", phone);
  await phone.getByRole("button", { name: "Allow once" }).tap();
  await words("Done from the phone.", phone).waitFor();
  // The other page shows the same.
  await words("Done from the phone.").waitFor();
  await picture("8-phone", phone);
  const width = await phone.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= PHONE.width, `${width} px wide`);
  await phone.getByRole("button", { name: "Sessions" }).tap();
  await phone.locator(".entry").first().waitFor();
  await picture("9-phone-sessions", phone);
  await context.close();
});

test("a picture that is dropped reaches the model, and is there after a reload", async () => {
  await ground.provider.script({ text: "A red square." });
  await page.evaluate(async () => {
    const canvas = new OffscreenCanvas(640, 480);
    const brush = canvas.getContext("2d");
    if (brush === null) throw new Error("no canvas");
    brush.fillStyle = "red";
    brush.fillRect(0, 0, 640, 480);
    const data = new DataTransfer();
    data.items.add(new File([await canvas.convertToBlob()], "red.png", { type: "image/png" }));
    document.body.dispatchEvent(
      new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }),
    );
  });
  await page.locator(".composer .thumb").waitFor();
  await say("What is this?");
  await words("A red square.").waitFor();
  const asked = (await ground.provider.asked()).at(-1) ?? "";
  assert.match(asked, /data:image\/png;base64,iVBOR/);
  await page.reload();
  await words("A red square.").waitFor();
  const shown = page.locator(".timeline .picture");
  await until("the picture is shown", () =>
    shown.evaluate((one: HTMLImageElement) => one.complete && one.naturalWidth === 640),
  );
  assert.match((await shown.getAttribute("src")) ?? "", /^\/v1\/blobs\/[0-9a-f]{64}$/);
  await picture("14-attachment");
});

test("a PDF that the model does not take comes back, and a text reaches it", async () => {
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Add a picture, PDF or text" }).click();
  await (await chooser).setFiles([
    { name: "plan.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7 plan") },
    { name: "notes.md", mimeType: "text/markdown", buffer: Buffer.from("Mind the corner.") },
  ]);
  await page.locator(".composer .chip").nth(1).waitFor();
  await picture("14-files");
  await say("Read these");
  await page.getByText("PDF files are not sent to lab/m").waitFor();
  await picture("14-files-refused");
  await ground.provider.script({ text: "I mind it." });
  await page.getByRole("button", { name: "Remove plan.pdf" }).click();
  await composer().press("Enter");
  await words("I mind it.").waitFor();
  const asked = (await ground.provider.asked()).at(-1) ?? "";
  assert.match(asked, /<file name=\\"notes\.md\\">\\nMind the corner\./);
  await page.reload();
  await words("notes.md").waitFor();
  await picture("14-files-sent");
  const opening = page.context().waitForEvent("page");
  await page.getByRole("button", { name: "notes.md" }).click();
  const opened = await opening;
  await opened.getByText("Mind the corner.").waitFor();
  await opened.close();
});

test("the sessions of other folders are listed and can be opened", async () => {
  const other = join(ground.base, "other");
  await mkdir(other);
  await ground.provider.script({ text: "I am in the other folder." }, { text: "Still in the other folder." });
  await run([TILLER, "run", "Where are you?"], { env: ground.env, cwd: other });
  await page.getByRole("button", { name: "Sessions" }).click();
  await page.locator(".entry").filter({ hasText: "other ·" }).waitFor();
  await picture("10-sessions");
  await page.getByText("Where are you?").first().click();
  await words("I am in the other folder.").waitFor();
  assert.equal(await page.locator(".top-folder").textContent(), "other");
  await say("And now?");
  await words("Still in the other folder.").waitFor();
  await picture("11-other-folder");
});

test("checkpoints, branches, models and costs are a menu away", async () => {
  for (const place of ["Checkpoints", "Branches", "Models", "Costs by day"]) {
    await page.getByRole("button", { name: "More" }).click();
    if (place === "Checkpoints") await picture("12-more");
    await page.getByRole("menuitem", { name: place }).click();
    await page.locator(".place-head").waitFor();
    await page.locator(".place .codicon-loading").waitFor({ state: "detached" });
    await picture(`13-${place.toLowerCase().replaceAll(" ", "-")}`);
  }
  await page.getByRole("button", { name: "Back to the conversation" }).click();
});

test("a session is shared, read without a login, and taken back", async () => {
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Shared pages" }).click();
  await page.getByRole("button", { name: "Create link" }).click();
  const link = await page.getByRole("textbox", { name: "Link" }).inputValue();
  await picture("15-share");
  const stranger = await browser.newContext();
  const read = await stranger.newPage();
  assert.equal((await read.goto(link))?.status(), 200);
  await read.getByText("I am in the other folder.").waitFor();
  // Scripts do not run in it, those of tests neither.
  await read.screenshot({ path: join(ARTEFACTS, "web-16-shared-page.png") });
  await page.getByRole("button", { name: "Revoke" }).click();
  await page.getByText("revoked").waitFor();
  assert.equal((await read.goto(link))?.status(), 410);
  await stranger.close();
});

test("a task of a script is listed and leads to its session", async () => {
  await ground.provider.script({ text: "The changelog is written." });
  await page.evaluate(async () => {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ prompt: "Update the changelog." });
    await fetch("/api/tasks", { method: "POST", headers, body });
  });
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Tasks for scripts" }).click();
  await page.getByText(/^\s*done · now\s*$/).waitFor();
  await picture("17-script-tasks");
  await page.getByRole("button", { name: "Update the changelog." }).click();
  await words("The changelog is written.").waitFor();
});

test("the page met no fault, and keeps nobody out", () => {
  assert.deepEqual(faults, []);
  assert.deepEqual(barriers, []);
});
