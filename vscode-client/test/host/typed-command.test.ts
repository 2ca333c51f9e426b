// A command in a terminal: typed, and never run by being typed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isOneLine, typedText } from "../../src/host/panel/typed-command.js";

test("a command is typed without Enter and without the keys that a control character is", () => {
  assert.equal(typedText("npm test\n"), "npm test");
  assert.equal(typedText("a\r\nb\r\n\r\n"), "a\nb");
  assert.equal(typedText("echo \u0003\u0015\u001b[201~\u009bx"), "echo [201~x");
  assert.equal(typedText("echo 'ü 👩‍💻'"), "echo 'ü 👩‍💻'");
});

test("only a command of one line without a tab can be typed", () => {
  assert.ok(isOneLine(typedText("npm test\n")));
  assert.ok(!isOneLine("a\nb"));
  assert.ok(!isOneLine("a\tb"));
});
