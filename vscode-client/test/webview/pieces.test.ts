// The pure parts of the panel: cutting, cleaning, completing, laying out.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TreeNode } from "../../src/shared/wire.js";
import { besideOf } from "../../src/webview/beside.js";
import { type Chunk, Chunker } from "../../src/webview/chunks.js";
import { classesOf, spansOf } from "../../src/webview/colored.js";
import { askedAt } from "../../src/webview/completing.js";
import { compose, filled } from "../../src/webview/composing.js";
import { placeOf } from "../../src/webview/links.js";
import { oneLine, plainText } from "../../src/webview/safe-text.js";
import { EMPTY_COMPOSER } from "../../src/webview/state.js";
import { treeLines } from "../../src/webview/tree-lines.js";
import { agoText, countText, durationText, linesText, shortPath } from "../../src/webview/words.js";

const ANSWER = `# A title

Some words, and a list:

- one
- two

  still two

\`\`\`python src/a.py
def f():

    return 1
\`\`\`

| a | b |
| - | - |
| 1 | 2 |

The end.`;

function joined(chunks: readonly Chunk[]): string {
  return chunks.map((one) => (one.kind === "prose" ? one.source : one.text)).join("");
}

test("a text that grows letter by letter is cut as if it had come at once", () => {
  const whole = new Chunker().chunks("a", ANSWER, { streaming: false });
  const growing = new Chunker();
  for (let end = 1; end <= ANSWER.length; end++)
    growing.chunks("a", ANSWER.slice(0, end), { streaming: true });
  const grown = growing.chunks("a", ANSWER, { streaming: false });
  assert.deepEqual(
    grown.map((one) => one.kind),
    ["prose", "code", "prose", "prose"],
  );
  assert.deepEqual(grown, whole);
});

test("what is finished stays the same piece while more comes", () => {
  const chunker = new Chunker();
  const before = chunker.chunks("a", `${"x ".repeat(700)}\n\nsecond\n\nthi`, { streaming: true });
  const after = chunker.chunks("a", `${"x ".repeat(700)}\n\nsecond\n\nthird and mo`, { streaming: true });
  assert.equal(after[0], before[0]);
});

test("a block of code knows its language, its file and whether it goes on", () => {
  const [open] = new Chunker().chunks("a", "```ts src/a.ts\nlet a", { streaming: true });
  assert.deepEqual(open, { kind: "code", language: "ts", path: "src/a.ts", text: "let a", open: true });
  const [closed] = new Chunker().chunks("b", "```src/b.py\nb = 1\n```", { streaming: false });
  assert.deepEqual(closed, { kind: "code", language: "py", path: "src/b.py", text: "b = 1\n", open: false });
});

test("a paragraph without an end is cut, and nothing of it is lost", () => {
  const text = "word ".repeat(20_000);
  const chunks = new Chunker().chunks("a", text, { streaming: true });
  assert.ok(chunks.length >= 12);
  assert.ok(chunks.every((one) => one.kind === "prose" && one.source.length <= 8000));
  assert.equal(joined(chunks), text);
});

const SEEN: readonly [string, string, string][] = [
  ["colours", "\u001b[1;31mred\u001b[0m", "red"],
  ["links of terminals", "\u001b]8;;http://x\u0007here\u001b]8;;\u0007", "here"],
  ["turned writing", "a\u202eb\u2069", "a⟨U+202E⟩b⟨U+2069⟩"],
  ["what cannot be seen", "a\u200bb\ufeff", "a⟨U+200B⟩b⟨U+FEFF⟩"],
  ["tags of Unicode", "a\u{e0041}", "a⟨U+E0041⟩"],
  ["joined emoji", "👩\u200d💻", "👩\u200d💻"],
  ["ends of lines", "a\r\nb\rc", "a\nb\nc"],
  ["other controls", "a\u0007b", "a␇b"],
];
for (const [name, text, shown] of SEEN) {
  test(`plain text: ${name}`, () => assert.equal(plainText(text), shown));
}

test("a title is one line", () => assert.equal(oneLine(" a\n\n b\t c "), "a b c"));

test("what is completed stands before the cursor", () => {
  assert.deepEqual(askedAt("look at @src/a", 14), { sign: "@", start: 8, typed: "src/a" });
  assert.deepEqual(askedAt("/co", 3), { sign: "/", start: 0, typed: "co" });
  assert.deepEqual(askedAt("in #Cla", 7), { sign: "#", start: 3, typed: "Cla" });
  assert.equal(askedAt("me@example", 10), undefined);
  assert.equal(askedAt("a /co", 5), undefined);
});

test("links name files and lines, and nothing else", () => {
  assert.deepEqual(placeOf("src/a.py:12"), { path: "src/a.py", line0: 11 });
  assert.deepEqual(placeOf("./a%20b.py#L3-L5"), { path: "a b.py", line0: 2 });
  assert.deepEqual(placeOf("file:///w/a.py"), { path: "/w/a.py", line0: 0 });
  assert.equal(placeOf("javascript:alert(1)"), undefined);
  assert.equal(placeOf("vscode:extension/x"), undefined);
  for (const address of [
    "javascript:1",
    "command:1",
    "vscode:1:2",
    "file:////evil.example/share",
    "//evil.example/x",
  ])
    assert.equal(placeOf(address), undefined, address);
  assert.deepEqual(placeOf("./a.py:12"), { path: "a.py", line0: 11 });
});

test("a link with a broken escape opens nothing", () => assert.equal(placeOf("a%zz.py"), undefined));

test("what the server wrote beside the words is no word of the user", () => {
  assert.deepEqual(besideOf("<editor-context>\nthings\n</editor-context>"), []);
  assert.deepEqual(besideOf('<selection uri="file:///a&amp;b.py">\nx = 1\n</selection>'), [
    { type: "resource", uri: "file:///a&b.py", text: "x = 1" },
  ]);
  assert.deepEqual(besideOf("The user points at file:///a.py; read it when it matters."), [
    { type: "resource", uri: "file:///a.py" },
  ]);
  assert.equal(besideOf("look at <selection> here"), undefined);
});

test("the composer keeps words, and remembers what was said", () => {
  let composer = compose(EMPTY_COMPOSER, { type: "typed", text: "one" });
  composer = compose(composer, { type: "cleared", sent: "one" });
  composer = compose(composer, { type: "typed", text: "half" });
  composer = compose(composer, { type: "recalled", step: 1 });
  assert.equal(composer.text, "one");
  composer = compose(composer, { type: "recalled", step: 1 });
  assert.equal(composer.text, "one");
  composer = compose(composer, { type: "recalled", step: -1 });
  assert.equal(composer.text, "half");
});

test("the editor adds to the composer, and the same thing only once", () => {
  const block = { type: "resource", uri: "file:///a.py" } as const;
  const before = compose(EMPTY_COMPOSER, { type: "typed", text: "look" });
  const composer = filled(filled(before, { type: "compose", text: "here", blocks: [block] }), {
    type: "compose",
    blocks: [block],
  });
  assert.equal(composer.text, "look\nhere");
  assert.equal(composer.attachments.length, 1);
  assert.equal(filled(composer, { type: "compose", text: "new", replace: true }).text, "new");
});

test("branches are indented where they part, the one in force first", () => {
  const node = (entry: string, parent?: string): TreeNode => ({
    entry,
    kind: "user",
    preview: entry,
    at: "",
    ...(parent && { parent }),
  });
  const nodes = [
    node("a"),
    node("b", "a"),
    node("c", "b"),
    node("d", "b"),
    node("e", "d"),
    node("lost", "gone"),
  ];
  assert.deepEqual(
    treeLines(nodes, "e").map((line) => [line.node.entry, line.depth, line.onBranch]),
    [
      ["a", 0, true],
      ["b", 0, true],
      ["d", 1, true],
      ["e", 1, true],
      ["c", 1, false],
      ["lost", 0, false],
    ],
  );
});

test("a session of 100,000 entries has its tree, and a circle no end", () => {
  const long = Array.from({ length: 100_000 }, (_, at): TreeNode => {
    const parent = at > 0 ? { parent: String(at - 1) } : {};
    return { entry: String(at), kind: "user", preview: "", at: "", ...parent };
  });
  assert.equal(treeLines(long, "99999").length, 100_000);
  const circle = [
    { entry: "a", parent: "b", kind: "user", preview: "", at: "" },
    { entry: "b", parent: "a", kind: "user", preview: "", at: "" },
  ];
  assert.deepEqual(treeLines(circle, "a"), []);
});

test("numbers are short", () => {
  assert.deepEqual([999, 1500, 123_456, 2_500_000].map(countText), ["999", "1.5k", "123k", "2.5M"]);
  assert.deepEqual([40, 1500, 61_000].map(durationText), ["40 ms", "1.5 s", "1 min 1 s"]);
  assert.equal(agoText("2026-01-01T00:00:00Z", Date.parse("2026-01-01T02:10:00Z")), "2 h ago");
  assert.equal(shortPath("file:///w/src/a%20b.py", [{ uri: "file:///w" }]), "src/a b.py");
  assert.equal(linesText({ start: { line: 0, character: 0 }, end: { line: 3, character: 0 } }), "1–3");
});

test("styles of commands become classes, without colours that a theme does not define", () => {
  const styles = ["1;31", "97", "44;93", "107;30", "38;5;208;4", "3;48;2;31;32;33", "0", "", "1;38;5"];
  assert.deepEqual(styles.map(classesOf), [
    "ansi-bold ansi-1",
    "ansi-15",
    "ansi-on-4 ansi-11",
    "ansi-on-15 ansi-0",
    "ansi-underline",
    "ansi-italic",
    "",
    "",
    "ansi-bold",
  ]);
});

test("details without spans have no colours", () => {
  for (const wrong of [undefined, null, 1, [[1, 2]], [["a", 2, "31"]], { 0: 1 }])
    assert.deepEqual(spansOf(wrong as never), []);
  assert.deepEqual(spansOf([[1, 2, "31"]]), [[1, 2, "31"]]);
});
