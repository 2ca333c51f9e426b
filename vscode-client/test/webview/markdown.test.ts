// Links in the Markdown of a model: where they may lead, and that they show it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parser } from "../../src/webview/markdown.js";

const HREF = /<a href="([^"]*)"/g;

function hrefs(source: string): string[] {
  return [...parser.render(source).matchAll(HREF)].map((found) => found[1] ?? "");
}

function words(source: string): string {
  return parser
    .render(source)
    .replace(/<[^>]*>/g, "")
    .replaceAll("&amp;", "&")
    .trim();
}

test("a scheme with a number is no line of a file", () => {
  const schemes = [
    ..."javascript command vscode vscode-insiders data vbscript ms-msdt tel ssh JaVaScRiPt".split(" "),
    ..."java&#115;cript javascript&colon;1# command%3A1#".split(" "),
  ];
  for (const scheme of schemes) {
    const found = [...hrefs(`[x](${scheme}:1)`), ...hrefs(`![x](${scheme}:12)`), ...hrefs(`<${scheme}:1>`)];
    assert.deepEqual(
      found.filter((href) => !href.startsWith("command%3A")),
      [],
      scheme,
    );
  }
  assert.deepEqual(hrefs("[x](javascript:alert(1)) [x](command:tiller.stop) [x](data:text/html,1)"), []);
});

test("a line of a file is a relative address, which is no scheme for anybody", () => {
  assert.deepEqual(hrefs("[x](a.py:12) [y](src/a.py:12) [z](./Makefile:3) [b](src/b.py#L3)"), [
    "./a.py:12",
    "src/a.py:12",
    "./Makefile:3",
    "src/b.py#L3",
  ]);
  assert.deepEqual(hrefs("[x](javascript.a:1)"), ["./javascript.a:1"]);
});

const SHOWN: [string, string][] = [
  ["[good.example](https://evil.test/a?b=1&c=2)", "good.example (https://evil.test/a?b=1&c=2)"],
  ["[https://good.example](https://evil.test)", "https://good.example (https://evil.test)"],
  ["[**good**.`example`/x](https://evil.test)", "good.example/x (https://evil.test)"],
  ["[see good.example now](http://evil.test)", "see good.example now (http://evil.test)"],
  ["[good。example](https://evil.test)", "good。example (https://evil.test)"],
  ["[www.good](https://evil.test)", "www.good (https://evil.test)"],
  ["[a@good.example](mailto:a@evil.test)", "a@good.example (mailto:a@evil.test)"],
  ["[https://good.example/](src/a.py)", "https://good.example/ (src/a.py)"],
  ["![good.example](https://evil.test/p.png)", "good.example (https://evil.test/p.png)"],
  ["[![good.example](b.png)](https://evil.test)", "good.example (https://evil.test)"],
  ["[good.example][1]\n\n[1]: https://evil.test", "good.example (https://evil.test)"],
  ["http://xn--pple-43d.com/", "http://аpple.com/ (http://xn--pple-43d.com/)"],
  ["[good.example](https://good.example@evil.test)", "good.example (https://good.example@evil.test)"],
];

test("words that look like another address are followed by the real one in full", () => {
  for (const [source, shown] of SHOWN) assert.equal(words(source), shown, source);
});

test("words that are the address, or like none, stay alone", () => {
  for (const [source, shown] of [
    ["https://good.example/a", "https://good.example/a"],
    ["good.com and b@good.com", "good.com and b@good.com"],
    ["[good.example](https://good.example/)", "good.example"],
    ["<https://good.example/ä>", "https://good.example/ä"],
    ["[the page](https://good.example)", "the page"],
    ["[a.py](src/a.py:12)", "a.py"],
    ["[src/a.py](file:///w/src/a.py)", "src/a.py"],
  ] as const)
    assert.equal(words(source), shown, source);
});

test("the title of a link is its address, whatever the model wrote there", () => {
  const html = parser.render(
    '[a page](https://evil.test "https://good.example") ![x](https://e.test "good")',
  );
  assert.deepEqual(
    [...html.matchAll(/title="([^"]*)"/g)].map((found) => found[1]),
    ["https://evil.test", "https://e.test"],
  );
});
