// The page of `tiller web` in a real browser, before a small server that implements the web channel.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { seriousFaults } from "./axe.js";
import { PAGE } from "./web-server.js";
import { eventually, PHONE, picture, ROW, shows, tooSmall, transcript, webTest } from "./web-stage.js";

const MOST_BYTES = 250_000;

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

webTest(
  "where a page may show no notification its worker shows and withdraws it",
  { log: "permission" },
  async ({ server, page }) => {
    await page.context().grantPermissions(["notifications"]);
    await page.locator(".welcome").waitFor();
    // As Chrome on Android does.
    await page.evaluate(() => {
      class Refused {
        static permission = "granted";
        static requestPermission = async () => "granted";
        constructor() {
          throw new TypeError(
            "Illegal constructor. Use ServiceWorkerRegistration.showNotification() instead.",
          );
        }
      }
      Object.defineProperty(window, "Notification", { value: Refused });
    });
    const shown = () =>
      page.evaluate(async () => {
        const registration = await navigator.serviceWorker.getRegistration("/assets/worker.js");
        const all = (await registration?.getNotifications()) ?? [];
        return all.map((one) => `${one.title}: ${one.body}`);
      });
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Notify me when I am needed" }).click();
    await page.evaluate(() =>
      Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true }),
    );
    server.play("permission.requested");
    await eventually(async () => (await shown()).length === 1, "a notification is shown");
    assert.match((await shown())[0] ?? "", /: \S/);
    server.play("permission.resolved");
    await eventually(async () => (await shown()).length === 0, "it is withdrawn");
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
