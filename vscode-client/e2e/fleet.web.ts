// The session of a job of the fleet in a browser: the same panel, which only reads and follows the worker.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { Chromium, faultsOf } from "./support/browser.ts";
import { ARTEFACTS, PYTHON, REPOSITORY } from "./support/ground.ts";
import { PATIENCE_MS } from "./support/until.ts";

let folder: string;
let job: ChildProcess;
let lines: Interface;
let chromium: Chromium;
let page: Page;
let faults: string[];

before(async () => {
  await mkdir(ARTEFACTS, { recursive: true });
  folder = await mkdtemp(join(tmpdir(), "tiller-fleet-"));
  const argv = ["-m", "tests.support.fleet.growing_job", folder];
  job = spawn(PYTHON, argv, { cwd: REPOSITORY, stdio: ["pipe", "pipe", "inherit"] });
  assert.ok(job.stdout);
  lines = createInterface({ input: job.stdout });
  const [line] = (await once(lines, "line")) as [string];
  const { origin, token } = JSON.parse(line) as { origin: string; token: string };
  chromium = await Chromium.start();
  const context = await chromium.browser.newContext({
    httpCredentials: { username: "fleet", password: token },
    viewport: { width: 900, height: 700 },
  });
  context.setDefaultTimeout(PATIENCE_MS);
  page = await context.newPage();
  faults = faultsOf(page);
  await page.goto(origin);
});
after(async () => {
  await chromium?.stop();
  job?.stdin?.end();
  if (job?.exitCode === null) await once(job, "exit");
  await rm(folder, { recursive: true, force: true });
});

/** Has the worker do something, and waits until that is stored. */
async function order(line: string): Promise<void> {
  const stored = once(lines, "line");
  job.stdin?.write(`${line}\n`);
  await stored;
}

test("a job is opened from the list, and followed to its end", async () => {
  await page.getByRole("link", { name: "1", exact: true }).click();
  await page.getByText("Review the change of the").waitFor();
  await page.getByText("This page only reads").waitFor();
  assert.equal(await page.locator("#composer-text").count(), 0);
  await order("say Line 12 of `basket.py` is **wrong**.");
  await page.locator("strong", { hasText: "wrong" }).waitFor();
  await page.getByText("team/basket#7: running").waitFor();
  await order("end");
  await page.getByText("team/basket#7: done").waitFor();
  await page.screenshot({ path: join(ARTEFACTS, "web-fleet.png") });
});

test("the menu offers what the fleet serves", async () => {
  await page.getByRole("button", { name: "More" }).click();
  const offered = await page.getByRole("menuitem").allTextContents();
  assert.deepEqual(
    offered.map((one) => one.trim()),
    ["Export as Markdown"],
  );
  const saved = page.waitForEvent("download");
  await page.getByRole("menuitem").click();
  const file = join(folder, "session.md");
  await (await saved).saveAs(file);
  assert.match(await readFile(file, "utf8"), /Line 12 of/);
  await page.getByRole("button", { name: "Sessions" }).click();
  await page.getByText("review of forge:team/basket#7").last().waitFor();
  await page.getByRole("button", { name: "Sessions" }).click();
});

test("a page that is loaded anew shows the same job", async () => {
  await page.reload();
  await page.getByText("Line 12 of").waitFor();
  assert.deepEqual(faults, []);
});
