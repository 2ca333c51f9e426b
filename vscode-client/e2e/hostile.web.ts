// What a hostile page, a name that points to this machine, and hostile words of a model reach of `tiller web`: nothing.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { Chromium, faultsOf } from "./support/browser.ts";
import { ARTEFACTS, type Ground, keepLogs, leave, makeGround } from "./support/ground.ts";
import { PATIENCE_MS, until } from "./support/until.ts";
import { sessionOf, Web } from "./support/web.ts";

/** A name of the attacker's that points to this machine. */
const REBOUND = "rebound.example";
const LOG = "web-hostile";

let ground: Ground;
let web: Web;
let chromium: Chromium;
let context: BrowserContext;
let page: Page;
let faults: string[];
let attacker: Server;
/** Answers that our own page got. */
const own: string[] = [];

before(async () => {
  await mkdir(ARTEFACTS, { recursive: true });
  ground = await makeGround({ settings: { permission: { mode: "ask" }, sandbox: "off" } });
  web = await Web.start(ground, LOG, ["--verbose"]);
  chromium = await Chromium.start({ args: [`--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`] });
  context = await chromium.browser.newContext({ viewport: { width: 1200, height: 2400 } });
  context.setDefaultTimeout(PATIENCE_MS);
  page = await context.newPage();
  faults = faultsOf(page);
  page.on("response", (one) => {
    own.push(`${one.request().method()} ${new URL(one.url()).pathname} ${one.status()}`);
  });
  await page.goto(web.address);
  await page.locator("#composer-text").waitFor();
  attacker = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>Free games</title><body></body>");
  });
  await new Promise<void>((listening) => attacker.listen(0, "127.0.0.1", listening));
});
after(async () => {
  await chromium?.stop();
  attacker?.close();
  await web?.stop();
  await keepLogs(ground, "web-hostile-daemon");
  await leave(ground);
});

/** Gives the requests that the server answered, each with its status. */
async function answered(): Promise<string[]> {
  const text = await readFile(join(ARTEFACTS, `${LOG}.log`), "utf8");
  return [...text.matchAll(/(GET|POST|OPTIONS|PUT|DELETE|HEAD) '([^']*)' (\d+)/g)].map(
    ([, method, path, status]) => `${method} ${path} ${status}`,
  );
}

/** Gives the requests that the server answered others than our own page. */
async function foreign(): Promise<string[]> {
  const heard = await answered();
  for (const one of own) if (heard.includes(one)) heard.splice(heard.indexOf(one), 1);
  return heard;
}

/** Tries all that a page may do with another; gives what succeeded. */
function attack({ origin, session }: { origin: string; session: string }): Promise<string[]> {
  const rpc = `${origin}/v1/rpc`;
  const body = JSON.stringify({
    method: "agent/prompt",
    params: { session, content: [{ type: "text", text: "stolen" }] },
  });
  const reached: string[] = [];
  const credentials = "include" as const;
  const attempt = async (name: string, act: () => Promise<unknown>) => {
    const isReached = await act().then(
      (answer) => answer !== false,
      () => false,
    );
    if (isReached) reached.push(name);
  };
  const loaded = (element: HTMLElement) =>
    new Promise((good, bad) => {
      element.addEventListener("load", good);
      element.addEventListener("error", bad);
      document.body.append(element);
    });
  const made = <K extends keyof HTMLElementTagNameMap>(
    name: K,
    more: Partial<HTMLElementTagNameMap[K]>,
  ): HTMLElementTagNameMap[K] => Object.assign(document.createElement(name), more);
  const opened = (one: EventSource | WebSocket) =>
    new Promise((good, bad) => {
      one.addEventListener("open", good);
      one.addEventListener("error", bad);
    });
  const form = async (enctype: string) => {
    const frame = made("iframe", { name: `f${enctype.length}` });
    document.body.append(frame);
    const posted = made("form", { action: rpc, method: "post", enctype, target: frame.name });
    posted.append(made("input", { name: body.slice(0, -1), value: "}" }));
    document.body.append(posted);
    const answer = new Promise((done) => frame.addEventListener("load", done));
    posted.submit();
    await answer;
    // What came is of another origin, or a page of the browser: it cannot be read.
    return (frame.contentDocument?.body.textContent ?? "") !== "";
  };
  return (async () => {
    await attempt("fetch events", () => fetch(`${origin}/v1/events?sessions=${session}`, { credentials }));
    await attempt("fetch rpc", () =>
      fetch(rpc, { method: "POST", credentials, body, headers: { "content-type": "application/json" } }),
    );
    await attempt("fetch rpc, no preflight", () =>
      fetch(rpc, { method: "POST", credentials, body, headers: { "content-type": "text/plain" } }),
    );
    await attempt("fetch rpc, opaque", async () => {
      await fetch(rpc, { method: "POST", mode: "no-cors", credentials, body });
      // That it was sent is not hidden from the page; the log of the server has what became of it.
      return false;
    });
    await attempt("beacon", async () => navigator.sendBeacon(rpc, body) && false);
    await attempt("form, text/plain", () => form("text/plain"));
    await attempt("form, urlencoded", () => form("application/x-www-form-urlencoded"));
    const stream = `${origin}/v1/events?sessions=${session}`;
    await attempt("EventSource", () => opened(new EventSource(stream, { withCredentials: true })));
    await attempt("WebSocket", () => opened(new WebSocket(`${origin.replace("http", "ws")}/v1/events`)));
    await attempt("img of events", () => loaded(made("img", { src: stream })));
    await attempt("img of an asset", () => loaded(made("img", { src: `${origin}/assets/icon.svg` })));
    await attempt("script", () => loaded(made("script", { src: `${origin}/assets/app.js` })));
    await attempt("style", () =>
      loaded(made("link", { rel: "stylesheet", href: `${origin}/assets/app.css` })),
    );
    await attempt("frame", async () => {
      const frame = made("iframe", { src: `${origin}/` });
      await loaded(frame);
      return frame.contentDocument !== null && frame.contentDocument.body.textContent !== "";
    });
    await attempt("logout", () => fetch(`${origin}/v1/logout`, { method: "POST", credentials, body: "{}" }));
    return reached;
  })();
}

for (const host of ["127.0.0.1", "localhost", REBOUND]) {
  test(`a page of ${host} on another port reaches nothing`, async () => {
    const before = (await foreign()).length;
    const asked = (await ground.provider.asked()).length;
    const hostile = await context.newPage();
    await hostile.goto(`http://${host}:${(attacker.address() as AddressInfo).port}/`);
    const reached = await hostile.evaluate(attack, { origin: web.origin, session: sessionOf(page) });
    assert.deepEqual(reached, []);
    // A window that it opens, and its own one that it sends there.
    const [popup] = await Promise.all([
      context.waitForEvent("page"),
      hostile.evaluate((origin) => void window.open(`${origin}/v1/events?sessions=a`), web.origin),
    ]);
    await popup.waitForLoadState();
    await popup.close();
    const moved = await hostile
      .evaluate((origin) => void location.assign(`${origin}/`), web.origin)
      .then(() => hostile.waitForURL(`${web.origin}/`))
      .then(() => hostile.textContent("body"));
    assert.match(moved ?? "", /another site/);
    await hostile.close();
    const heard = await foreign();
    assert.ok(heard.length >= before + 10, `${heard.length - before} requests came`);
    assert.deepEqual(
      heard.filter((one) => !/ (403|405|415|421)$/.test(one)),
      [],
    );
    assert.equal((await ground.provider.asked()).length, asked);
  });
}

test("a name that was pointed to this machine is not answered", async () => {
  const rebound = await context.newPage();
  const address = `http://${REBOUND}:${web.port}`;
  const answer = await rebound.goto(`${address}/`);
  assert.equal(answer?.status(), 421);
  assert.match((await rebound.textContent("body")) ?? "", /does not answer to that Host/);
  await rebound.close();
});

const SCRIPT = "<img src=x onerror=window.hit=1><script>window.hit=1</script>";
const WORDS = [
  SCRIPT,
  "[one](javascript:window.hit=1) [two](data:text/html,<script>window.hit=1</script>) [three](vbscript:1)",
  "![picture](https://evil.example/pixel.png) ![local](/v1/events)",
  '<a href="javascript:window.hit=1">x</a> <svg onload=window.hit=1> <iframe srcdoc="<script>parent.hit=1</script>">',
  "```html\n</code></pre><script>window.hit=1</script>\n```",
  `| a |\n| - |\n| ${SCRIPT} |`,
].join("\n\n");
const NAME = "<img src=x onerror=window.hit=1>.html";

test("names of files, differences, output and words of a model are text", async () => {
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  await ground.provider.script(
    { tool_calls: [{ name: "write", arguments: { path: NAME, content: `${SCRIPT}\n</pre>${SCRIPT}` } }] },
    { tool_calls: [{ name: "bash", arguments: { command: `echo '${SCRIPT}'` } }] },
    { text: WORDS },
  );
  await page.locator("#composer-text").fill(SCRIPT);
  await page.locator("#composer-text").press("Enter");
  for (let answers = 0; answers < 2; answers += 1) {
    const allow = page.getByRole("button", { name: "Allow once" });
    const done = page.locator(".run-end");
    await allow.or(done).first().waitFor();
    if (await done.count()) break;
    assert.equal(await page.locator(".asks img, .asks script").count(), 0);
    const request = await page.locator(".asks").getAttribute("data-request");
    await allow.click();
    await page.locator(`.asks[data-request="${request}"]`).waitFor({ state: "detached" });
  }
  await page.locator(".run-end").waitFor();
  for (const head of await page.locator(".tool-head[aria-expanded=false]").all()) await head.click();
  await page.screenshot({ path: join(ARTEFACTS, "web-hostile.png") });
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Changes" }).click();
  await page.locator(".place .hunk").first().waitFor();
  await page.getByRole("button", { name: "Sessions" }).click();
  await page.locator(".entry").first().waitFor();
  await page.screenshot({ path: join(ARTEFACTS, "web-hostile-sessions.png") });
  await page.getByRole("button", { name: "Back to the conversation" }).click();
  for (const link of await page.locator(".timeline a").all()) await link.click();
  await until("the page is still there", () => page.locator("#composer-text").isVisible());
  assert.equal(await page.evaluate(() => (window as unknown as { hit?: number }).hit), undefined);
  assert.equal(await page.locator(".timeline :is(script, iframe, img, svg, style)").count(), 0);
  const schemes = await page
    .locator(".timeline a")
    .evaluateAll((all) => all.map((one) => new URL((one as HTMLAnchorElement).href).protocol));
  assert.deepEqual(
    schemes.filter((one) => !/^https?:$/.test(one)),
    [],
  );
  assert.deepEqual(
    requests.filter((url) => !url.startsWith(web.origin)),
    [],
  );
  assert.deepEqual(faults, []);
});
