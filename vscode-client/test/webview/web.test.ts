// The page of `tiller web` in a real browser, before a small server that implements the web channel.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { seriousFaults } from "./axe.js";
import { launch, noBrowser } from "./stage.js";
import { PAGE, WebServer } from "./web-server.js";

const MOST_BYTES = 250_000;
const PHONE = { width: 390, height: 844 };
const TARGET_PX = 44;
/** Until what is asserted must have come to pass. */
const SOON_MS = 5000;

const skip = noBrowser() ?? false;
let browser: Browser;
before(async () => {
  if (!skip) browser = await launch();
});
after(() => browser?.close());

interface Scene {
  server: WebServer;
  page: Page;
}

/** Opens the page at the address with the one-off token, and asserts at the end that it met no fault. */
function webTest(
  name: string,
  {
    log = "edits",
    viewport = { width: 1100, height: 800 },
    dark = true,
    role = "operator" as "observer" | "approver" | "operator",
  },
  play: (scene: Scene) => Promise<void>,
): void {
  test(name, { skip }, async () => {
    const server = await WebServer.start(log);
    server.role = role;
    const context = await browser.newContext({ viewport, colorScheme: dark ? "dark" : "light" });
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => {
      // That a server was not there is what some tests are about.
      if (message.type() === "error" && !message.text().includes("Failed to load resource"))
        faults.push(message.text());
    });
    try {
      await page.goto(server.firstAddress);
      await play({ server, page });
      assert.deepEqual(faults, []);
    } finally {
      await context.close();
      await server.stop();
    }
  });
}

async function eventually(holds: () => Promise<boolean> | boolean, what: string): Promise<void> {
  const end = Date.now() + SOON_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `not in ${SOON_MS} ms: ${what}`);
    await new Promise((go) => setTimeout(go, 20));
  }
}

async function shows(page: Page, words: string | RegExp): Promise<void> {
  await page.getByText(words).first().waitFor({ timeout: SOON_MS });
}

/** Gives the buttons that a finger misses. */
function tooSmall(page: Page): Promise<{ name: string; height: number }[]> {
  return page.evaluate((least) => {
    const all = [...document.querySelectorAll<HTMLElement>("button")].filter(
      (one) => one.offsetParent !== null,
    );
    return all
      .map((one) => ({ name: one.title || one.textContent, height: one.getBoundingClientRect().height }))
      .filter(({ height }) => height < least);
  }, TARGET_PX);
}

const picture = (page: Page, name: string) =>
  page.screenshot({ path: join("dist", "pictures", `web-${name}.png`) });
const transcript = async (page: Page) =>
  ((await page.locator(".timeline").textContent()) ?? "").replace(/\s+/g, " ");

webTest("the token of the address is exchanged and leaves the address", {}, async ({ server, page }) => {
  await page.locator(".welcome").waitFor();
  assert.deepEqual(server.logins, [{ token: "one-off" }]);
  assert.equal(new URL(page.url()).search, "");
  assert.match(new URL(page.url()).hash, new RegExp(server.snapshot.session));
  await page.locator("#composer-text").fill("a draft");
  await page.reload();
  await page.locator(".welcome").waitFor();
  assert.equal(await page.locator("#composer-text").inputValue(), "a draft");
  assert.equal(server.logins.length, 1);
  await picture(page, "welcome");
});

webTest("what needs an editor is not offered", {}, async ({ server, page }) => {
  await page.locator(".welcome").waitFor();
  assert.equal(await page.getByRole("button", { name: "Add the editor selection" }).count(), 0);
  await page.getByTitle("Permission mode").click();
  assert.deepEqual(
    (await page.locator(".menu .menu-label").allInnerTexts()).filter((name) => name === "Full access"),
    [],
  );
  await page.locator(".menu").getByText("Auto", { exact: true }).click();
  await eventually(() => server.of("agent/session/configure").length === 1, "the mode is configured");
  const [asked] = server.of("agent/session/configure");
  assert.deepEqual(asked, { session: server.snapshot.session, set: { mode: "auto" } });
});

webTest(
  "a prompt is posted with its session, and the run is shown as it happens",
  {},
  async ({ server, page }) => {
    await page.locator("#composer-text").fill("Repair it");
    await page.keyboard.press("Enter");
    await eventually(() => server.of("agent/prompt").length === 1, "the prompt is posted");
    const [asked] = server.of("agent/prompt");
    assert.equal(asked?.["session"], server.snapshot.session);
    assert.deepEqual(asked?.["content"], [{ type: "text", text: "Repair it" }]);
    server.play();
    await page.locator(".file-diff .diff").first().waitFor();
    await picture(page, "diff");
    await page.getByRole("button", { name: "2 changes in 1 file" }).click();
    await picture(page, "changes");
    assert.deepEqual(await seriousFaults(page), []);
    await page.getByTitle("Keep this change").first().click();
    await eventually(() => server.of("agent/changes/resolve").length === 1, "the answer is posted");
  },
);

webTest(
  "a stream that is cut in mid-run goes on without a hole or a double",
  {},
  async ({ server, page }) => {
    await page.locator(".welcome").waitFor();
    server.play("tool.started");
    await page.locator(".timeline .cell").first().waitFor();
    await eventually(() => server.streams.length > 0, "the stream is open");
    server.cut();
    server.play();
    await page.getByTitle("Keep this change").first().waitFor();
    const last = server.streams.at(-1);
    assert.match(last?.lastEventId ?? "", /^[\w-]+\.\d+$/);
    const resumed = await transcript(page);
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.getByTitle("Keep this change").first().waitFor();
    assert.equal(await transcript(other), resumed);
  },
);

webTest(
  "a page that is loaded anew in mid-run shows the same session",
  { log: "steering" },
  async ({ server, page }) => {
    await page.locator(".welcome").waitFor();
    server.play("run.started");
    await page.getByRole("button", { name: "Stop (Escape)" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Stop (Escape)" }).waitFor();
    const opened = server.of("agent/session/open").at(-1);
    assert.equal(opened?.["session"], server.snapshot.session);
    await page.locator("#composer-text").fill("Also the tests");
    await page.keyboard.press("Enter");
    await eventually(() => server.of("agent/prompt").length === 1, "the word is posted");
    assert.equal(server.of("agent/prompt")[0]?.["delivery"], "auto");
    server.play();
    await page.getByRole("button", { name: "Stop (Escape)" }).waitFor({ state: "detached" });
  },
);

webTest("a connection on which nothing comes is opened anew", {}, async ({ server, page }) => {
  await page.clock.install();
  await page.reload();
  await page.locator(".welcome").waitFor();
  await eventually(() => server.streams.length > 0, "the stream is open");
  const before = server.streams.length;
  await page.clock.fastForward(40_000);
  await eventually(() => server.streams.length > before, "another stream is open");
  const online = server.streams.length;
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  await eventually(() => server.streams.length > online, "another stream is open after the network changed");
  assert.match(server.streams.at(-1)?.lastEventId ?? "", /^[\w-]+\.\d+$/);
});

webTest("a lost server is said, and the page comes back by itself", {}, async ({ server, page }) => {
  await page.locator(".welcome").waitFor();
  server.isSignedIn = false;
  server.cut();
  await shows(page, /not signed in/);
  await picture(page, "signed-out");
  server.isSignedIn = true;
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  await page.getByText(/not signed in/).waitFor({ state: "detached" });
});

webTest("without a cookie the page says how to sign in", {}, async ({ server, page }) => {
  await page.locator(".welcome").waitFor();
  server.isSignedIn = false;
  await page.goto("about:blank");
  await page.goto(server.address);
  await shows(page, /tiller web/);
  assert.equal(await page.getByRole("button", { name: "Show the log" }).count(), 0);
});

const ROW = { created: "2026-11-21T09:29:10.000Z", modified: "2026-11-21T09:31:44.500Z", messages: 4 };

webTest("the sessions of all folders are listed, each with its folder", {}, async ({ server, page }) => {
  const sessions = ["shop", "engine"].map((name) => ({
    ...ROW,
    ...{
      session: `s-${name}`,
      title: `Work on ${name}`,
      workspace: `file:///home/ada/${name}`,
      preview: "Repair it.",
    },
  }));
  server.on("agent/session/list", () => ({ sessions }));
  await page.getByRole("button", { name: "Sessions" }).click();
  await shows(page, "Work on engine");
  await shows(page, /^\s*engine ·/);
  assert.equal(server.of("agent/session/list")[0]?.["scope"], "all");
  await picture(page, "sessions");
  assert.deepEqual(await seriousFaults(page), []);
  await page.getByText("Work on engine").click();
  await eventually(
    () => server.of("agent/session/open").some((one) => one["session"] === "s-engine"),
    "the session is opened",
  );
});

webTest(
  "on a phone a question comes first, is answered with a thumb, and nothing is wider than the screen",
  { log: "permission", viewport: PHONE, dark: false },
  async ({ server, page }) => {
    await page.locator(".welcome").waitFor();
    server.play("permission.requested");
    const card = page.locator(".asks");
    await card.waitFor();
    await picture(page, "phone-permission");
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= PHONE.width, `${width} px wide`);
    assert.deepEqual(await tooSmall(page), []);
    assert.match(await page.title(), /^\(1\)/);
    assert.deepEqual(await seriousFaults(page), []);
    await card.getByRole("button").first().click();
    await eventually(() => server.of("agent/permission/respond").length === 1, "the answer is posted");
  },
);

webTest(
  "on a phone a diff is kept and rejected piece by piece",
  { viewport: PHONE },
  async ({ server, page }) => {
    await page.locator(".welcome").waitFor();
    server.play();
    await page.locator(".file-diff .diff").first().waitFor();
    await picture(page, "phone-run");
    await page.getByRole("button", { name: "2 changes in 1 file" }).click();
    await page.locator(".place .hunk").first().waitFor();
    await picture(page, "phone-changes");
    assert.deepEqual(await seriousFaults(page), []);
    assert.deepEqual(await tooSmall(page), []);
    await page.getByTitle("Reject this change").first().click();
    await eventually(() => server.of("agent/changes/resolve").length === 1, "the answer is posted");
  },
);

webTest("changes that come while they are asked for are asked for again", {}, async ({ server, page }) => {
  await page.locator(".welcome").waitFor();
  let release = () => {};
  const held = new Promise<void>((done) => {
    release = done;
  });
  const { changes } = server.log.answers;
  server.on("agent/changes/list", async () => {
    await held;
    return changes;
  });
  server.play("changes.updated");
  await eventually(() => server.of("agent/changes/list").length === 1, "they are asked for");
  server.play();
  await page.getByRole("button", { name: "Stop (Escape)" }).waitFor({ state: "detached" });
  assert.equal(server.of("agent/changes/list").length, 1);
  release();
  await eventually(() => server.of("agent/changes/list").length === 2, "they are asked for again");
});

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
    await page.locator(".place-head").waitFor();
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
  await page.locator(".entry").first().waitFor();
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

webTest(
  "a notification is asked for by a click, shown where the page is hidden, and withdrawn with the answer",
  { log: "permission", dark: false },
  async ({ server, page }) => {
    await page.locator(".welcome").waitFor();
    const notify = async (name: string) => {
      await page.getByRole("button", { name: "More" }).click();
      await page.getByRole("menuitem", { name }).click();
    };
    // The system's own notifications cannot be seen from here: the page's are counted where it makes them.
    await page.evaluate(() => {
      const shown: string[] = [];
      Object.assign(window, { shown });
      class Counted extends EventTarget {
        static permission = "default";
        static async requestPermission() {
          Counted.permission = "granted";
          return "granted";
        }
        constructor(title: string, options: { body: string }) {
          super();
          shown.push(`${title}: ${options.body}`);
        }
        close() {
          shown.push("closed");
        }
      }
      Object.defineProperty(window, "Notification", { value: Counted });
    });
    const shown = () => page.evaluate(() => (window as unknown as { shown: string[] }).shown);
    await notify("Notify me when I am needed");
    await page.evaluate(() =>
      Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true }),
    );
    server.play("permission.requested");
    await eventually(async () => (await shown()).length === 1, "a notification is shown");
    server.play("permission.resolved");
    await eventually(async () => (await shown()).at(-1) === "closed", "it is withdrawn");
    await notify("Stop notifications");
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Notify me when I am needed" }).waitFor();
    await picture(page, "more");
    assert.deepEqual(await seriousFaults(page), []);
  },
);

webTest("the page can be installed", {}, async ({ page }) => {
  await page.locator(".welcome").waitFor();
  const devtools = await page.context().newCDPSession(page);
  const { installabilityErrors } = await devtools.send("Page.getInstallabilityErrors");
  const faults = installabilityErrors.map((one) => one.errorId);
  // A context of a test is as a window in private, where nothing can be installed.
  assert.deepEqual(
    faults.filter((one) => one !== "in-incognito"),
    [],
  );
  const { url, errors } = await devtools.send("Page.getAppManifest");
  assert.match(url, /manifest\.webmanifest$/);
  assert.deepEqual(errors, []);
});

/** Makes a photograph of 12 megapixels in the page, and drops or pastes it. */
function give(
  page: Page,
  kind: "drop" | "paste",
  { name = "photo.png", on = ".timeline" } = {},
): Promise<void> {
  return page.evaluate(
    async ({ kind, name, on }) => {
      const canvas = new OffscreenCanvas(4000, 3000);
      const brush = canvas.getContext("2d");
      if (brush === null) throw new Error("no canvas");
      brush.fillStyle = kind === "drop" ? "teal" : "orange";
      brush.fillRect(0, 0, 4000, 3000);
      const data = new DataTransfer();
      data.items.add(new File([await canvas.convertToBlob()], name, { type: "image/png" }));
      const all = { bubbles: true, cancelable: true };
      const event =
        kind === "drop"
          ? new DragEvent("drop", { ...all, dataTransfer: data })
          : new ClipboardEvent("paste", { ...all, clipboardData: data });
      document.querySelector(on)?.dispatchEvent(event);
      if (!event.defaultPrevented) throw new Error("the browser would leave the page");
    },
    { kind, name, on },
  );
}

webTest(
  "pictures are dropped, pasted or chosen, stored, shown small, and named in the prompt",
  { viewport: PHONE, dark: false },
  async ({ server, page }) => {
    await page.locator(".welcome").waitFor();
    await give(page, "drop", { on: ".top-bar" });
    await page.locator(".chip .thumb").first().waitFor();
    await give(page, "paste", { on: "#composer-text" });
    await page.locator(".chip .thumb").nth(1).waitFor();
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Add a picture, PDF or text" }).click();
    const text = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("Look at the corner.") };
    const pdf = { name: "plan.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.7 plan") };
    await (await chooser).setFiles([
      text,
      pdf,
      { name: "a.zip", mimeType: "application/zip", buffer: Buffer.from([0x50, 0x4b, 0xff]) },
    ]);
    await shows(page, "a.zip is no picture (PNG, JPEG, GIF or WebP), PDF or text.");
    await page.locator(".chip").nth(3).waitFor();
    const widths = await page
      .locator(".chip .thumb")
      .evaluateAll((all) => all.map((one) => (one as HTMLImageElement).naturalWidth));
    assert.deepEqual(widths, [96, 96]);
    await picture(page, "phone-attachments");
    assert.deepEqual(await seriousFaults(page), []);
    await page.getByRole("button", { name: "Send (Enter)" }).click();
    await eventually(() => server.of("agent/prompt").length === 1, "the prompt is posted");
    const content = server.of("agent/prompt")[0]?.["content"] as {
      type: string;
      blob?: string;
      name?: string;
    }[];
    assert.deepEqual(
      content.map((one) => one.blob),
      [...server.blobs.keys()],
    );
    assert.deepEqual(
      content.map((one) => one.type),
      ["image", "image", "file", "file"],
    );
    assert.deepEqual(
      content.map((one) => one.name),
      [undefined, undefined, "notes.txt", "plan.pdf"],
    );
    assert.ok(!JSON.stringify(content).includes("data"));
  },
);

webTest("a message of another page does not reach the panel", {}, async ({ page }) => {
  await page.locator(".welcome").waitFor();
  await page.evaluate(() => window.postMessage({ type: "compose", text: "rm -rf", replace: true }, "*"));
  await page.evaluate(() => new Promise((go) => setTimeout(go)));
  assert.equal(await page.locator("#composer-text").inputValue(), "");
});

test("the page is at most 250 kB compressed, and nothing in it is inline", () => {
  // The licences are not loaded with it, and the pictures only by an installation.
  const loaded = readdirSync(PAGE).filter((name) => name !== "licenses.txt" && !name.endsWith(".png"));
  const files = loaded.map((name) => gzipSync(readFileSync(join(PAGE, name)), { level: 9 }).length);
  const bytes = files.reduce((one, other) => one + other, 0);
  assert.ok(bytes <= MOST_BYTES, `${bytes} bytes`);
  const html = readFileSync(join(PAGE, "index.html"), "utf8");
  assert.doesNotMatch(html, /<style|style=|<script(?![^>]*nonce="\{\{nonce\}\}"[^>]*src=)| on\w+=/);
});

test("every colour of the panel has a default in the light and in the dark", () => {
  const used = new Set(
    readdirSync(join("src", "webview"), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(css|ts)$/.test(name))
      .flatMap((name) => readFileSync(join("src", "webview", name), "utf8").match(/--vscode-[\w-]+/g) ?? []),
  );
  const [light = "", dark = ""] = readFileSync(join("src", "web", "style", "theme.css"), "utf8").split(
    "@media",
  );
  const missing = (sheet: string) => [...used].filter((name) => !sheet.includes(`${name}:`));
  assert.deepEqual(missing(light), []);
  const isColour = (name: string) => !/font|Border$/.test(name);
  assert.deepEqual(missing(dark).filter(isColour), []);
});
