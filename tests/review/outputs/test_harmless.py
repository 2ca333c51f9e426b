"""What a model wrote commands no host, calls nobody and fetches nothing; code stays as it is."""

import pytest

from server.review.outputs.harmless import fenced, harmless, harmless_cell, inline_code

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
    "fence": ("```py\n@root <b>\n/merge\n```\n/merge", "```py\n@root <b>\n/merge\n```\n\\/merge"),
    "tilde-fence": ("~~~\n```\n/x\n~~~\n/y", "~~~\n```\n/x\n~~~\n\\/y"),
    "open-fence": ("```\n/x", "```\n/x\n```"),
    "suggestion": ("```suggestion\nevil()\n```", "```\nevil()\n```"),
    "suggestion-range": ("~~~ suggestion:-3+0\nevil()\n~~~", "~~~\nevil()\n~~~"),
    "hidden": ("a\u202eb", "a&lt;U+202E>b"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_made_harmless(name: str) -> None:
    text, expected = TEXTS[name]
    assert harmless(text) == expected


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
