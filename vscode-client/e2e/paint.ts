// Measures how soon the page of `tiller web` is painted, and how much it loads: node paint.ts ADDRESS TIMES CHROMIUM.
import { chromium } from "playwright-core";

const THROTTLED = 4;
const [, , address = "", times = "1", executablePath = "/usr/bin/chromium"] = process.argv;

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
// The first visit signs in, and is not measured: it starts the connection to the daemon.
const first = await context.newPage();
await first.goto(address);
await first.locator("#composer-text").waitFor();
const signedIn = first.url();
await first.close();
const paint: number[] = [];
const kb: number[] = [];
for (let visit = 0; visit < Number(times); visit += 1) {
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  const answers = new Set<string>();
  let bytes = 0;
  devtools.on("Network.responseReceived", ({ requestId, response }) => {
    if (new URL(response.url).pathname.startsWith("/v1/")) answers.add(requestId);
  });
  devtools.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (!answers.has(requestId)) bytes += encodedDataLength;
  });
  await devtools.send("Network.enable");
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  await devtools.send("Emulation.setCPUThrottlingRate", { rate: THROTTLED });
  await page.goto(signedIn);
  await page.locator("#composer-text").waitFor();
  const painted = await page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
  );
  paint.push(painted);
  kb.push(bytes / 1000);
  await page.close();
}
await browser.close();
console.log(JSON.stringify({ paint, kb }));
