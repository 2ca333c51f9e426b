"""Every message that people can see stands in a table, so that a new or changed one is seen in review.

`python -m tests.architecture.test_messages` writes the table anew.
"""

import ast
import re
from itertools import zip_longest

import pytest

from tests.architecture.messages import TABLE, collect_messages, product_messages, render_table
from tests.support.harness.sources import Source

BANNED = re.compile(r"\b(?:told|said|nobody|somebody|whoever)\b", re.IGNORECASE)
REMARK = re.compile(r"[a-z][^.:]*\.")
"""A sentence with its full stop begins with a capital; a clause, which follows a name and a colon, has neither."""

WAIVERS = frozenset(
    {
        "How much a model thinks unless told otherwise.",
        "Minutes after which a session that nobody uses leaves the memory.",
        "The editor said it applied the edit of {}, but its text did not change: nothing was written. {}",
        "What answers when nobody can be asked.",
        "no words wait under the queue id {}: they were said, returned or dropped meanwhile; look at the queue again",
        "nobody logged in within {} s",
        "nothing has been said on this branch, so there is nothing to clone",
        "nothing was said of {}; see `tiller trust list`",
        "said nothing whole for {} s",
        "what you said could not be kept: {}",
        "{} is a session in which nothing was said: there is nothing to import",
        "{} was not {}, although the editor said it was. Look what is there.",
    }
)
"""Messages from before this rule that tests or documents pin; do not add to them."""


def test_the_table_has_every_message() -> None:
    written = TABLE.read_text(encoding="utf-8").splitlines()
    present = render_table(product_messages()).splitlines()
    changed = [
        f"-{old}\n+{new}" for old, new in zip_longest(written, present, fillvalue="") if old != new
    ]
    assert changed[:1] == [], (
        "read the change, then run: python -m tests.architecture.test_messages"
    )


def test_messages_keep_to_the_house_style() -> None:
    faults = [
        f"{path}: {text}: {fault}"
        for path, texts in product_messages().items()
        for text in texts
        if text not in WAIVERS and (fault := _fault(text)) is not None
    ]
    assert faults == []


def test_every_waiver_is_still_needed() -> None:
    faulty = {text for texts in product_messages().values() for text in texts if _fault(text)}
    assert sorted(WAIVERS - faulty) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("nobody logged in within {} s", "the word 'nobody'"),
        ("The server failed!", "an exclamation mark"),
        ("the file is gone.", "a sentence that begins without a capital"),
        ("The file is gone.", None),
        ("the file is gone: nothing was written", None),
        ("{} is gone.", None),
    ],
)
def test_a_fault_is_noticed(text: str, fault: str | None) -> None:
    assert _fault(text) == fault


@pytest.mark.parametrize(
    ("code", "messages"),
    [
        ("raise Gone('the file is gone')", ["the file is gone"]),
        ("def f(path):\n message = f'no file {path}'\n raise Gone(message)", ["no file {}"]),
        ("raise Gone('a ' 'b' if x else 'c d')", ["a b", "c d"]),
        ("raise Gone(text + ', so it is left')", ["{}, so it is left"]),
        ("raise Gone('x y', advice=' Read it.')", ["x y", "Read it."]),
        ("class Late(Gone):\n def __init__(self):\n  super().__init__('too late')", ["too late"]),
        ("complain('run', f'{n} lines were lost')", ["{} lines were lost"]),
        ("parser.add_argument('--all', help='of all folders')", ["of all folders"]),
        ("log('the file is gone')", []),
        ("raise Gone('gone')", []),
    ],
)
def test_a_message_is_found_where_it_is_made(code: str, messages: list[str]) -> None:
    text = f"class Gone(Exception): ...\n{code}\n"
    path = "server/tiller_server/cli/p.py"
    source = Source(path=path, text=text, tree=ast.parse(text))
    assert collect_messages([source]).get(path, []) == messages


def _fault(text: str) -> str | None:
    if banned := BANNED.search(text):
        return f"the word {banned[0]!r}"
    if text.endswith("!"):
        return "an exclamation mark"
    if REMARK.fullmatch(text):
        return "a sentence that begins without a capital"
    return None


if __name__ == "__main__":
    TABLE.write_text(render_table(product_messages()), encoding="utf-8")
