// The composer in a real browser: sending, steering, completing, pasting.

import assert from "node:assert/strict";
import type { ToPanel } from "../../src/shared/messages.js";
import { panelTest } from "./panel-test.js";
import { emptySnapshot, HELLO } from "./stage.js";

panelTest("Enter sends, and the words are gone from the composer", async (stage) => {
  await stage.play(HELLO, emptySnapshot());
  const field = stage.page.locator("#composer-text");
  await field.fill("Mend it");
  await field.press("Enter");
  await stage.settled();
  const [asked] = await stage.requests("agent/prompt");
  assert.deepEqual(asked?.["content"], [{ type: "text", text: "Mend it" }]);
  assert.equal(asked?.["delivery"], "auto");
  assert.equal(await stage.value(field), "");
  await field.press("ArrowUp");
  await stage.settled();
  assert.equal(await stage.value(field), "Mend it");
});

panelTest("words that were not taken come back, and it is said why", async (stage) => {
  await stage.answer({ "agent/prompt": { refused: { message: "The queue is full.", kind: "QueueFull" } } });
  await stage.play(HELLO, emptySnapshot());
  await stage.page.locator("#composer-text").fill("Mend it");
  await stage.page.locator("#composer-text").press("Enter");
  await stage.settled();
  assert.equal(await stage.value(stage.page.locator("#composer-text")), "Mend it");
  assert.match(await stage.text(stage.page.locator(".toast")), /The queue is full/);
  await stage.answer({ "agent/prompt": {} });
  await stage.page.locator("#composer-text").press("Enter");
  await stage.settled();
  assert.equal(await stage.count(stage.page.locator(".toast")), 0);
});

panelTest("while it works Enter steers, Alt+Enter queues, Escape stops", async (stage) => {
  await stage.playLog("steering", { until: "tool.output.delta" });
  const field = stage.page.locator("#composer-text");
  await field.fill("faster");
  await field.press("Enter");
  await field.fill("then rest");
  await field.press("Alt+Enter");
  await field.press("Escape");
  await stage.settled();
  const asked = await stage.requests("agent/prompt");
  assert.deepEqual(
    asked.map((one) => one["delivery"]),
    ["auto", "followUp"],
  );
  assert.deepEqual(await stage.requests("agent/run/cancel"), [{ scope: "session", queue: "keep" }]);
});

panelTest("queued words are edited in the composer", async (stage) => {
  await stage.answer({ "agent/queue/update": { queue: [] } });
  await stage.playLog("steering");
  await stage.page.locator(".queue [title=Edit]").click();
  await stage.settled();
  const field = stage.page.locator("#composer-text");
  assert.equal(await stage.value(field), "Then tell me how long it took.");
  await field.fill("Say it shorter.");
  await field.press("Enter");
  await stage.settled();
  const [asked] = await stage.requests("agent/queue/update");
  const [op] = (asked?.["ops"] ?? []) as { op: string; content: unknown }[];
  assert.equal(op?.op, "replace");
  assert.deepEqual(op?.content, [{ type: "text", text: "Say it shorter." }]);
});

panelTest("files are completed by @ and go along", async (stage) => {
  const found = { uri: "file:///home/ada/project/src/a.py", label: "src/a.py", icon: "file" };
  await stage.answer({ findFiles: { items: [found] } });
  await stage.play(HELLO, emptySnapshot());
  const field = stage.page.locator("#composer-text");
  await field.pressSequentially("look at @a");
  await stage.page.locator(".offer.chosen", { hasText: "src/a.py" }).waitFor();
  await field.press("Tab");
  await stage.settled();
  assert.equal(await stage.value(field), "look at src/a.py ");
  assert.equal(await stage.count(stage.page.locator(".composer .chip")), 1);
  await field.press("Enter");
  await stage.settled();
  const [asked] = await stage.requests("agent/prompt");
  assert.deepEqual((asked?.["content"] as unknown[] | undefined)?.[0], { type: "resource", uri: found.uri });
});

panelTest("what no longer fits the word is not offered, also before the answer comes", async (stage) => {
  const found = ["src/ab.py", "src/ac.py"].map((label) => ({
    uri: `file:///p/${label}`,
    label,
    icon: "file",
  }));
  await stage.answer({ findFiles: { items: found } });
  await stage.play(HELLO, emptySnapshot());
  const field = stage.page.locator("#composer-text");
  await field.pressSequentially("@");
  await stage.settled();
  assert.equal(await stage.count(stage.page.locator(".offer")), 7);
  await stage.answer({ findFiles: { never: true } });
  await field.pressSequentially("ac");
  await stage.settled();
  assert.deepEqual(await stage.page.locator(".offer .offer-label").allTextContents(), ["src/ac.py"]);
  await field.pressSequentially(" then");
  await stage.settled();
  assert.equal(await stage.count(stage.page.locator(".offer")), 0);
});

panelTest("commands are completed by /", async (stage) => {
  await stage.answer({
    "agent/command/list": { commands: [{ name: "review", description: "Look it over", source: "prompt" }] },
  });
  await stage.play(HELLO, emptySnapshot());
  const field = stage.page.locator("#composer-text");
  await field.pressSequentially("/co");
  await stage.settled();
  await field.press("Enter");
  await stage.settled();
  assert.equal(await stage.value(field), "/compact ");
  await field.fill("");
  await field.pressSequentially("/re");
  await stage.page.locator(".offer", { hasText: "/review" }).waitFor();
});

panelTest("a paste of 50 MB is refused in words, a big one becomes an attachment", async (stage) => {
  await stage.play(HELLO, emptySnapshot());
  const paste = (size: number) =>
    stage.page.evaluate((length) => {
      const data = new DataTransfer();
      data.setData("text/plain", "x".repeat(length));
      const began = performance.now();
      const field = document.getElementById("composer-text");
      field?.dispatchEvent(
        new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }),
      );
      return performance.now() - began;
    }, size);
  const took = await paste(50_000_000);
  await stage.settled();
  assert.match(await stage.text(stage.page.locator(".toast")), /47\.7 MB; at most 6\.0 MB/);
  assert.ok(took < 1000, `${took} ms`);
  await paste(50_000);
  await stage.settled();
  assert.match(await stage.text(stage.page.locator(".composer .chip")), /Pasted text/);
  assert.equal(await stage.value(stage.page.locator("#composer-text")), "");
});

panelTest("a PDF that is pasted goes along with its bytes, and another file is refused", async (stage) => {
  await stage.play(HELLO, emptySnapshot());
  const paste = (name: string, type: string, more = 0) =>
    stage.page.evaluate(
      ({ name, type, more }) => {
        const data = new DataTransfer();
        data.items.add(new File(["%PDF-1.7", new Uint8Array(more)], name, { type }));
        document
          .querySelector("#composer-text")
          ?.dispatchEvent(
            new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }),
          );
      },
      { name, type, more },
    );
  await paste("large.pdf", "application/pdf", 6 * 1024 * 1024);
  await stage.page
    .getByText("large.pdf has 6.0 MB; at most 5.0 MB can be dropped or pasted. Add it from the disk with +.")
    .waitFor();
  await paste("a.zip", "application/zip");
  await stage.page.getByText("a.zip is no picture (PNG, JPEG, GIF or WebP) or PDF.").waitFor();
  await paste("plan.pdf", "application/pdf");
  await stage.page.locator(".composer .chip", { hasText: "plan.pdf" }).waitFor();
  await stage.page.locator("#composer-text").press("Enter");
  await stage.settled();
  const [asked] = await stage.requests("agent/prompt");
  assert.deepEqual(asked?.["content"], [
    { type: "file", name: "plan.pdf", mime: "application/pdf", data: "JVBERi0xLjc=" },
  ]);
});

panelTest(
  "@url and the address of a page attach it; a message waits for it until it is removed",
  async (stage) => {
    await stage.play(HELLO, emptySnapshot());
    await stage.answer({ readPage: { never: true } });
    const composer = stage.page.getByRole("combobox", { name: "Prompt" });
    await composer.pressSequentially("Explain @ur");
    await stage.page.getByRole("option", { name: /url/ }).click();
    await stage.settled();
    assert.equal(await stage.value(composer), "Explain @https://");
    await composer.pressSequentially("docs.example/a#b");
    await stage.page.getByRole("option", { name: /attach this web page/ }).waitFor();
    await composer.press("Enter");
    const chip = stage.page.locator(".composer .chip", { hasText: "Reading https://docs.example/a#b" });
    await chip.waitFor();
    assert.equal(await stage.value(composer), "Explain ");
    await composer.press("Enter");
    await stage.page.getByText("The web page is still being read.").waitFor();
    assert.deepEqual(await stage.requests("agent/prompt"), []);
    await chip.getByRole("button", { name: /Remove/ }).click();
    await composer.press("Enter");
    await stage.settled();
    const [asked] = await stage.requests("agent/prompt");
    assert.deepEqual(asked?.["content"], [{ type: "text", text: "Explain " }]);
    const reads = (await stage.sent()).flatMap((one) => (one.type === "readPage" ? [one] : []));
    assert.deepEqual(
      reads.map((one) => one.url),
      ["https://docs.example/a#b"],
    );
    // Why a page that was removed could not be read is of no use.
    const error = { message: "The page does not answer." };
    await stage.play(...reads.map(({ id }): ToPanel => ({ type: "answer", id, error })));
    assert.equal(await stage.page.getByText(error.message).count(), 0);
  },
);

panelTest("a web page that was read is part of the prompt", async (stage) => {
  await stage.play(HELLO, emptySnapshot());
  const block = { type: "file", name: "a (docs.example)", mime: "text/plain", blob: "ab", size: 3 };
  await stage.answer({ readPage: { blocks: [block] } });
  const composer = stage.page.getByRole("combobox", { name: "Prompt" });
  await composer.pressSequentially("Explain @https://docs.example/a");
  await composer.press("Tab");
  await stage.page.locator(".composer .chip", { hasText: "a (docs.example)" }).waitFor();
  await composer.press("Enter");
  await stage.settled();
  const [asked] = await stage.requests("agent/prompt");
  assert.deepEqual((asked?.["content"] as unknown[] | undefined)?.[0], block);
});

panelTest("a web page that cannot be read is no part of the prompt", async (stage) => {
  await stage.play(HELLO, emptySnapshot());
  await stage.answer({ readPage: { refused: { message: "The page is not attached." } } });
  const composer = stage.page.getByRole("combobox", { name: "Prompt" });
  await composer.pressSequentially("Explain @https://docs.example/a");
  await composer.press("Tab");
  await stage.page.getByText("The page is not attached.").waitFor();
  assert.equal(await stage.page.locator(".composer .chip", { hasText: "Reading" }).count(), 0);
});
