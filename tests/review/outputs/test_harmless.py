"""What a model wrote commands no host, calls nobody and fetches nothing; code stays readable."""

import re

import pytest

from tiller_server.review.outputs.markdown_escape import (
    fenced,
    harmless,
    harmless_cell,
    holds_commands,
    inline_code,
)

TEXTS = {
    "mention": ("ask @root and @team-x now", "ask @\u2060root and @\u2060team-x now"),
    "address": ("a@b.example is no mention", "a@b.example is no mention"),
    "code": ("`@root` and ``a ` ![x](y)``", "`@root` and ``a ` ![x](y)``"),
    "not-code": (r"\`@root`", "\\`@\u2060root`"),
    "image": ("![x](https://e.example/?q=1)", "!\\[x](https://e.example/?q=1)"),
    "html": ("<img src=x> List<T>", "&lt;img src=x> List&lt;T>"),
    "comment": ("<!-- tiller:finding 0 -->", "&lt;!-- tiller:finding 0 -->"),
    "command": ("/merge\n > /approve\n1. /close", "\\/merge\n > \\/approve\n1. \\/close"),
    "path": ("see /usr and a/b", "see /usr and a/b"),
    "fence": ("```py\n@root <b>\n/merge\n```\n/merge", "```py\n@root <b>\n\\/merge\n```\n\\/merge"),
    "tilde-fence": ("~~~\n```\n/x\n~~~\n/y", "~~~\n```\n\\/x\n~~~\n\\/y"),
    "open-fence": ("```\n/x", "```\n\\/x\n```"),
    "suggestion": ("```suggestion\nevil()\n```", "```\nevil()\n```"),
    "suggestion-range": ("~~~ suggestion:-3+0\nevil()\n~~~", "~~~\nevil()\n~~~"),
    "suggestion-by-entity": ("```sugges&#116;ion\nevil()\n```", "```\nevil()\n```"),
    "language": ("``` c++ {.x}\na\n```", "```c++\na\n```"),
    "fence-in-a-list": (
        "1. a\n   ```\n   x\n```\n<b>\n```\n@root",
        "1. a\n```\n   x\n```\n&lt;b>\n```\n@root\n```",
    ),
    "end-with-a-hard-space": (
        "```\nx\n```\u00a0\n<b>\n```\n@root",
        "```\nx\n```\u00a0\n<b>\n```\n@\u2060root",
    ),
    "code-over-lines": ("a ` b\n`@root` c", "a \\` b\n`@root` c"),
    "code-behind-a-backslash": ("\\\\`x`@root`", "\\\\\\`x`@root`"),
    "code-behind-two-ticks": ("\\``x `@root`", "\\`\\`x `@root`"),
    "code-over-cells": ("| `@root|x` |", "| `@\u2060root|x` |"),
    "quoted-command": (">/merge", ">\\/merge"),
    "hidden": ("a\u202eb", "a&lt;U+202E>b"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_made_harmless(name: str) -> None:
    text, expected = TEXTS[name]
    assert harmless(text) == expected


LINE = re.compile(
    r"(?:^|[\n\r\u2028\u2029])[\s>]*(?:[-*+]\s+|\d+[.)]\s+)*(?:/[A-Za-z]|@[\w-]+(?:\[bot\])?\s+[\w/])"
)
"""A line that some host or bot could run, wherever it stands: the strictest reading of all of them at once."""
COMMANDS = ("/merge", "/approve now", "/remove-label ~x", "/LGTM", "@bot merge", "@dependabot[bot] rebase", "@x /ok")  # fmt: skip
PLACES: dict[str, str] = {
    "outside": "{}",
    "backticks": "```\n{}\n```",
    "language": "```sh\n{}\n```\n",
    "tildes": "~~~\n{}\n~~~",
    "backticks in tildes": "~~~\n```\n{}\n```\n~~~",
    "between backticks in tildes": "~~~\n```\n```\n{}\n~~~",
    "longer fence": "````\n```\n```\n{}\n````",
    "longer fence, one inside": "`````\n````\n{}\n`````",
    "tildes in backticks": "```\n~~~\n{}\n~~~\n```",
    "a fence that does not end": "```\n{}",
    "a fence that ends with the other sign": "```\n{}\n~~~",
    "a shorter end": "````\n{}\n```\nx",
    "an end with words": "```\n{}\n``` x\n{}",
    "no fence, ticks behind": "``` a`b\n{}\n```",
    "indented fence": "   ```\n{}\n   ```",
    "fence in a list": "- a\n  ```\n{}\n  ```\n{}",
    "fence in a quote": "> ```\n> {}\n> ```\n{}",
    "CRLF": "~~~\r\n{}\r\n~~~\r\n{}\r\n",
    "lone returns": "a\r{}\n~~~\nb\r{}\n~~~",
    "separators of JavaScript": "```\na\u2028{}\u2029{}\n```",
    "tabs": "```\n\t{}\n```\n\t{}",
    "spaces": "```\n  {}\n```\n  {}",
    "indented code": "a\n\n    {}\n\n\t{}",
    "list in code": "```\n- {}\n1. {}\n> {}\n```",
    "HTML comment": "<!--\n{}\n-->",
    "HTML comment around a fence": "<!--\n```\n-->\n{}\n```",
    "HTML comment in a fence": "```\n<!--\n{}\n-->\n```",
    "block of HTML": "<details>\n{}\n</details>",
    "quote of GitLab": ">>>\n{}\n>>>",
    "block of mathematics": "$$\n{}\n$$",
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", PLACES)
def test_no_line_is_a_command_wherever_it_stands(place: str, command: str) -> None:
    text = PLACES[place].replace("{}", command)
    assert LINE.search(text) is not None
    assert LINE.search(harmless(text)) is None
    assert LINE.search(fenced(text)) is None
    assert holds_commands(text)
    words = command.lstrip("/@")
    assert harmless(text).count(words) == text.count(words)


@pytest.mark.parametrize(
    "code",
    [
        "@property\ndef a(self): ...",
        "@app.get('/x')\n@Override\n",
        "a = b\n  / c\n/ d",
        "// approve\n/* merge */",
        "see /merge and @bot merge",
        "#!/bin/sh",
        "  /usr/bin/env python",
    ],
)
def test_code_that_commands_nothing_is_as_it_was(code: str) -> None:
    assert harmless(f"```\n{code}\n```") == f"```\n{code}\n```"
    assert not holds_commands(code)


def test_a_path_at_the_margin_of_code_is_only_indented() -> None:
    assert harmless("```\n/usr/bin/env x\n```\n") == "```\n /usr/bin/env x\n```\n"


def test_a_cell_of_a_table_stays_one_cell() -> None:
    assert harmless_cell("a | b\n@c") == "a \\| b @\u2060c"


@pytest.mark.parametrize("text", ["x", "```", "a ```` b\n", ""])
def test_nothing_in_a_block_of_code_ends_it(text: str) -> None:
    first, *inner, last = fenced(text).split("\n")
    assert first == last
    assert all(first not in line for line in inner)


@pytest.mark.parametrize(("text", "code"), [("a`b", "`` a`b ``"), ("a\nb", "`a b`")])
def test_nothing_in_a_name_ends_its_code(text: str, code: str) -> None:
    assert inline_code(text) == code
