// The places of the page of `tiller web`: shares, tasks for scripts, and what each role is offered.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { seriousFaults } from "./axe.js";
import type { WebServer } from "./web-server.js";
import { eventually, PHONE, picture, ROW, type Scene, shows, tooSmall, webTest } from "./web-stage.js";

/** Names of what acts, by the least role that may use it. */
const ACTING = {
  approver: ["Allow once", "Reject", "Stop", "Cancel"],
  operator: [
    "Send (Enter)",
    "New session",
    "Keep this change",
    "Keep all",
    "Edit message",
    "Rename",
    "Restore",
    "Create link",
    "Revoke",
  ],
};
const PLACES = [
  "Changes",
  "Checkpoints",
  "Branches",
  "Models",
  "Costs by day",
  "Shared pages",
  "Tasks for scripts",
];

const LINK = {
  share: "share-1",
  session: "s-shop",
  title: "Repair the basket",
  state: "active",
  createdAt: ROW.modified,
  expiresAt: "2026-11-22T09:31:44.500Z",
};
const SHARING = {
  preview: {
    ...{ session: "s-shop", title: "Repair the basket", size: 48_200, confirm: "digest" },
    redacted: [
      { kind: "api-key", count: 2 },
      { kind: "secret", count: 1 },
    ],
  },
  created: { share: "share-1", url: "http://127.0.0.1:7433/s/a-token", expiresAt: LINK.expiresAt },
};
const TASK = { session: "s-shop", run: "r1", createdAt: ROW.modified, reason: null };
const TASKS = [
  { ...TASK, task: "task-4", state: "waiting", reason: "Allow bash: make deploy?", prompt: "Deploy it." },
  { ...TASK, task: "task-3", state: "running", prompt: "Update the changelog." },
  { ...TASK, task: "task-2", state: "failed", reason: "The cost limit is reached.", prompt: "Rename all." },
  { ...TASK, task: "task-1", state: "done", prompt: "Sort the imports." },
];

/** Has the server answer about links and tasks. */
function withApi(server: WebServer): WebServer {
  let { state } = LINK;
  return server
    .on("GET /api/shares", () => ({ shares: [{ ...LINK, state }] }))
    .on("POST /api/shares/preview", () => SHARING.preview)
    .on("POST /api/shares", () => ({ status: 201, ...SHARING.created }))
    .on("POST /api/shares/share-1/revoke", () => {
      state = "revoked";
      return { ...LINK, state };
    })
    .on("GET /api/tasks", () => ({ tasks: TASKS, next: null }))
    .on("POST /api/tasks/task-3/cancel", () => ({ ...TASKS[1], state: "cancelled" }));
}

async function visit(page: Page, place: string): Promise<void> {
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: place }).click();
  await page.getByRole("heading", { name: place }).waitFor();
}

for (const look of ["light", "dark", "phone"] as const)
  webTest(
    `a session is shared after a look at what is redacted, and the link is ended again: ${look}`,
    { dark: look === "dark", ...(look === "phone" && { viewport: PHONE }) },
    async ({ server, page }) => {
      withApi(server);
      await page.locator(".welcome").waitFor();
      await visit(page, "Shared pages");
      await shows(page, "3 secrets are replaced by marks: 2 × api-key, 1 × secret.");
      await picture(page, `share-${look}`);
      await page.getByLabel("Expires after").selectOption("7 days");
      await page.getByRole("button", { name: "Create link" }).press("Enter");
      const field = page.getByRole("textbox", { name: "Link" });
      await field.waitFor();
      assert.equal(await field.inputValue(), SHARING.created.url);
      assert.deepEqual(server.api.find((one) => one.route === "POST /api/shares")?.body, {
        session: server.snapshot.session,
        confirm: "digest",
        expiresInS: 7 * 86_400,
      });
      await picture(page, `shared-${look}`);
      assert.deepEqual(await seriousFaults(page), []);
      if (look === "phone") assert.deepEqual(await tooSmall(page), []);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= (page.viewportSize()?.width ?? 0), `${width} px wide`);
      await page.getByRole("button", { name: "Revoke" }).click();
      await shows(page, "revoked");
      await page.getByRole("button", { name: "Create link" }).waitFor();
      await page.keyboard.press("Escape");
      await page.locator(".welcome").waitFor();
    },
  );

webTest("a session that changed since the look is looked at again", {}, async ({ server, page }) => {
  withApi(server).on("POST /api/shares", () => ({ status: 409, error: { message: "changed" } }));
  await page.locator(".welcome").waitFor();
  await visit(page, "Shared pages");
  await page.getByRole("button", { name: "Create link" }).click();
  await shows(page, "The session has changed since.");
  assert.equal(server.api.filter((one) => one.route === "POST /api/shares/preview").length, 2);
  assert.equal(await page.getByRole("textbox", { name: "Link" }).count(), 0);
});

for (const look of ["light", "dark", "phone"] as const)
  webTest(
    `the tasks of scripts are listed with their reasons, cancelled, and followed to their sessions: ${look}`,
    { dark: look === "dark", ...(look === "phone" && { viewport: PHONE }) },
    async ({ server, page }) => {
      withApi(server);
      await page.locator(".welcome").waitFor();
      await visit(page, "Tasks for scripts");
      await shows(page, /waiting: Allow bash: make deploy\?/);
      await shows(page, /failed: The cost limit is reached\./);
      await picture(page, `script-tasks-${look}`);
      assert.deepEqual(await seriousFaults(page), []);
      if (look === "phone") assert.deepEqual(await tooSmall(page), []);
      assert.equal(await page.getByRole("button", { name: "Cancel" }).count(), 2);
      await page.getByRole("button", { name: "Cancel Update the changelog." }).click();
      await eventually(
        () => server.api.some((one) => one.route === "POST /api/tasks/task-3/cancel"),
        "the task is cancelled",
      );
      await page.getByRole("button", { name: /Sort the imports/ }).press("Enter");
      await eventually(
        () => server.of("agent/session/open").some((one) => one["session"] === "s-shop"),
        "its session is opened",
      );
    },
  );

/** Visits all places of a session that waits for an answer, and gives the names of all buttons that were shown. */
async function visited({ server, page }: Scene): Promise<Set<string>> {
  const checkpoint = { checkpoint: "c1", at: ROW.modified, run: "r1", files: 1 };
  withApi(server)
    .on("agent/session/list", () => ({
      sessions: [{ ...ROW, session: "s-shop", title: "Shop", workspace: "file:///shop", preview: "" }],
    }))
    .on("agent/session/tree", () => ({ nodes: [], leaf: null }))
    .on("agent/checkpoint/list", () => ({ checkpoints: [checkpoint] }))
    .on("agent/checkpoint/preview", () => ({ files: [] }))
    .on("agent/costs", () => ({ sums: [], total: { calls: 0, usd: "0" }, problems: [] }));
  await page.locator(".top-bar").waitFor();
  server.play("permission.requested");
  await page.locator(".asks").waitFor();
  const names = new Set<string>();
  const look = async () => {
    const seen = await page.evaluate(() =>
      [...document.querySelectorAll("button")].map((one) => one.title || one.textContent.trim()),
    );
    for (const name of seen) names.add(name);
  };
  await look();
  for (const place of PLACES) {
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: place }).click();
    // "Costs by day" of the menu is headed "Costs".
    await page.locator(".place-head", { hasText: place.replace(" by day", "") }).waitFor();
    if (place === "Checkpoints") {
      await page.locator(".entry-main").first().click();
      await page.locator(".previewed").waitFor();
    }
    if (place === "Shared pages") {
      await page.getByRole("list", { name: "Links" }).waitFor();
      // The look at what is redacted comes with an answer of its own.
      if (server.role === "operator") await page.getByRole("button", { name: "Create link" }).waitFor();
    }
    if (place === "Tasks for scripts") await page.getByRole("list", { name: place }).waitFor();
    await look();
  }
  await page.getByRole("button", { name: "Sessions" }).click();
  await page.getByRole("list", { name: "Sessions" }).locator(".entry").first().waitFor();
  await look();
  return names;
}

/** Gives the least role of each method that the server serves. */
function served(): Map<string, string> {
  const table = readFileSync(join("..", "server", "tiller_server", "web", "methods.py"), "utf8");
  const rows = table.matchAll(/"(agent\/[\w/]+)": Served\(role="(\w+)"/g);
  return new Map([...rows].map(([, method = "", least = ""]) => [method, least]));
}

for (const role of ["observer", "approver", "operator"] as const) {
  webTest(
    `the page of an ${role} offers what the role may do`,
    { log: "permission", role, viewport: PHONE },
    async (scene) => {
      const names = await visited(scene);
      const offered = (expected: readonly string[]) => expected.filter((name) => names.has(name));
      assert.equal(offered(ACTING.approver).includes("Allow once"), role !== "observer");
      assert.equal(offered(["Cancel"]).length, role === "observer" ? 0 : 1);
      const posted = scene.server.api.filter((one) => one.route.startsWith("POST"));
      assert.equal(posted.length, role === "operator" ? 1 : 0);
      const operators = ["New session", "Rename", "Restore", "Create link", "Revoke"];
      assert.equal(offered(operators).length, role === "operator" ? operators.length : 0);
      if (role !== "operator") {
        assert.deepEqual(offered(ACTING.operator), []);
        assert.equal(await scene.page.locator("#composer-text").count(), 0);
        await shows(scene.page, `tiller web runs as ${role}`);
      }
      const least = served();
      const refused = scene.server.asked.filter(({ method }) => least.get(method) !== "observer");
      assert.deepEqual(refused, [], "looking around needs no more than the role observer");
      assert.deepEqual(await seriousFaults(scene.page), []);
      assert.deepEqual(await tooSmall(scene.page), []);
      await picture(scene.page, `role-${role}`);
    },
  );
}

webTest("a page whose server has another role now follows it", {}, async ({ server, page }) => {
  await page.locator("#composer-text").waitFor();
  server.role = "observer";
  await page.getByRole("button", { name: "Sessions" }).click();
  await shows(page, "tiller web runs as observer");
  assert.equal(await page.locator("#composer-text").count(), 0);
});
