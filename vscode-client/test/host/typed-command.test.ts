// A command in a terminal: typed, and never run by being typed.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { acceptsPaste, isOneLine, pasted, typedText } from "../../src/host/panel/typed-command.js";
import { localPrograms } from "../../src/host/server/programs.js";

test("a command is typed without Enter and without the keys that a control character is", () => {
  assert.equal(typedText("npm test\n"), "npm test");
  assert.equal(typedText("a\r\nb\r\n\r\n"), "a\nb");
  assert.equal(typedText("echo \u0003\u0015\u001b[201~\u009bx"), "echo [201~x");
  assert.equal(typedText("echo 'ü 👩‍💻'"), "echo 'ü 👩‍💻'");
});

test("a command of several lines or with a tab is one paste, which it cannot end itself", () => {
  assert.ok(isOneLine(typedText("npm test\n")));
  assert.ok(!isOneLine("a\nb"));
  assert.ok(!isOneLine("a\tb"));
  assert.equal(pasted(typedText("a\u001b[201~\nb")), "\u001b[200~a[201~\nb\u001b[201~");
});

test("a bash whose user switched pastes off, and a shell that is not asked, get no lines", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tiller-"));
  const inputrc = join(folder, "inputrc");
  const bash = await localPrograms().find("bash");
  assert.ok(bash);
  const accepts = async (value: string) => {
    await writeFile(inputrc, `set enable-bracketed-paste ${value}\n`);
    return acceptsPaste(bash, localPrograms({ ...process.env, TERM: "xterm", INPUTRC: inputrc }));
  };
  try {
    assert.equal(await accepts("on"), true);
    assert.equal(await accepts("off"), false);
    assert.equal(await acceptsPaste("/bin/sh", localPrograms()), false);
    assert.equal(await acceptsPaste(join(folder, "bash"), localPrograms()), false);
  } finally {
    await rm(folder, { recursive: true });
  }
});
