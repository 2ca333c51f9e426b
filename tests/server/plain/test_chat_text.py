"""The form of the chat file: what waits to be sent, where an answer goes, and that nothing of the user's is taken out."""

import random
import re

import pytest

from tiller_server.lsp.plain.chat.format import (
    ChatPiece,
    ChatPieceKind,
    draft_of,
    escaped,
    grown,
    line_end_of,
    new_file,
    tail_of,
)

NEW = new_file()
HEAD = NEW.removesuffix("## You\n\n")
ASKED = f"{HEAD}## You\n\nfix it\n"
ANSWERED = f"{HEAD}## You\n\nfix it\n\n## Tiller\n\nI look.\n\n## You\n\n"


def piece(kind: ChatPieceKind, text: str) -> ChatPiece:
    return ChatPiece(kind=kind, text=text)


def sent(words: str) -> ChatPiece:
    return ChatPiece(kind="you", text=words, from_file=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(NEW, "", id="a new file"),
        pytest.param(ASKED, "fix it", id="words"),
        pytest.param(ASKED.replace("\n", "\r\n"), "fix it", id="CRLF"),
        pytest.param(f"{NEW}a\r\nb\n\n c \n\n", "a\nb\n\n c", id="mixed line ends"),
        pytest.param(f"{NEW}one\n## Details\ntwo", "one\n## Details\ntwo", id="another heading"),
        pytest.param(ANSWERED, "", id="an answer, nothing since"),
        pytest.param(f"{ANSWERED}and now?", "and now?", id="words below an answer"),
        pytest.param("## you:\nhello", "hello", id="a heading by hand"),
        pytest.param("just do it\n", "just do it", id="no heading at all"),
        pytest.param("", "", id="an empty file"),
        pytest.param(" \n\t\n", "", id="white space"),
        pytest.param(NEW.replace("## You\n\n", "hello\n"), "hello", id="the heading was deleted"),
        pytest.param("## You\n\n\\## You\n", "\\## You", id="an escaped heading"),
    ],
)
def test_what_stands_below_the_last_heading_waits_to_be_sent(text: str, words: str) -> None:
    draft = draft_of(text)
    assert draft is not None
    assert draft.text == words


def test_below_an_answer_without_a_heading_nothing_waits() -> None:
    assert draft_of("## You\n\na\n\n## Tiller\n\nb\n\nc\n") is None


def test_an_answer_begins_below_the_words_that_were_sent() -> None:
    text = grown(ASKED, [sent("fix it")], tail="")
    assert text == f"{HEAD}## You\n\nfix it\n\n## Tiller\n\n## You\n\n"
    text = grown(text, [piece("block", "I look.")], tail=tail_of(text))
    assert text == ANSWERED


def test_an_answer_goes_on_where_it_ended_and_the_draft_stays_below() -> None:
    text = grown(f"{ANSWERED}mind the", [piece("more", "\n\nFound it.")], tail="I look.")
    assert text == ANSWERED.replace("I look.", "I look.\n\nFound it.") + "mind the"
    text = grown(text, [piece("more", " Done"), piece("line", "> done")], tail=tail_of(text))
    assert "Found it. Done\n\n> done\n\n## You\n\nmind the" in text


def test_lines_of_what_goes_on_stand_below_one_another() -> None:
    text = grown(ANSWERED, [piece("line", "> read a"), piece("line", "> read b")], tail="I look.")
    assert "I look.\n\n> read a\n> read b\n\n## You" in text
    text = grown(text, [piece("line", "> read c"), piece("block", "So.")], tail=tail_of(text))
    assert "> read b\n> read c\n\nSo.\n\n## You" in text


def test_where_the_user_changed_our_words_more_begins_anew() -> None:
    changed = ANSWERED.replace("I look.", "I look. NO!")
    text = grown(changed, [piece("more", " and on")], tail="I look.")
    assert "I look. NO!\n\nand on\n\n## You" in text


def test_a_turn_from_elsewhere_gets_its_own_headings() -> None:
    text = grown(
        f"{ANSWERED}draft", [piece("you", "stop\n## You"), piece("block", "Yes.")], tail=""
    )
    assert text == ANSWERED.replace("## You\n\n", "", 2).replace(
        HEAD, f"{HEAD}## You\n\n"
    ).rstrip() + ("\n\n## You\n\nstop\n\\## You\n\n## Tiller\n\nYes.\n\n## You\n\ndraft")


def test_what_was_typed_behind_the_words_that_were_sent_is_the_next_draft() -> None:
    text = grown(f"{NEW}fix it\nand that\n", [sent("fix it"), piece("block", "Yes.")], tail="")
    assert text.endswith("## You\n\nfix it\n\n## Tiller\n\nYes.\n\n## You\n\nand that\n")


def test_words_that_were_sent_and_deleted_are_written_again() -> None:
    text = grown(f"{NEW}another thing", [sent("fix it"), piece("block", "Yes.")], tail="")
    assert text.endswith("## You\n\nfix it\n\n## Tiller\n\nYes.\n\n## You\n\nanother thing")


def test_a_file_without_headings_keeps_its_words_and_gets_a_heading() -> None:
    assert grown("hello", [piece("block", "Hi.")], tail="") == (
        "## Tiller\n\nHi.\n\n## You\n\nhello"
    )
    assert grown("hello", [sent("hello")], tail="") == "hello\n\n## Tiller\n\n## You\n\n"


def test_the_line_ends_of_the_file_are_kept() -> None:
    text = ASKED.replace("\n", "\r\n")
    for one in ([sent("fix it")], [piece("block", "a\nb")], [piece("you", "c\nd")]):
        text = grown(text, one, tail=tail_of(text))
    assert "\n" not in text.replace("\r\n", "")
    assert "a\r\nb\r\n\r\n## You\r\n\r\nc\r\nd\r\n\r\n## You\r\n\r\n" in text
    assert line_end_of("a\r\nb\nc\r\n") == "\r\n"
    assert line_end_of("a\nb\r\n") == "\n"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("## You", "\\## You"),
        ("a\n  ##  tiller \nb", "a\n  \\##  tiller \nb"),
        ("### You\n## You too\n\\## You", "### You\n## You too\n\\## You"),
    ],
)
def test_nobody_else_can_write_a_heading_of_ours(words: str, shown: str) -> None:
    assert escaped(words) == shown
    assert draft_of(f"{ANSWERED}{escaped(words)}") is not None
    text = grown(NEW, [piece("block", escaped(words))], tail="")
    draft = draft_of(text)
    assert draft is not None
    assert draft.text == ""


PARTS = (
    "## You\n",
    "## Tiller\n",
    "words\n",
    "\n",
    "> line\n",
    "a\r\n",
    "## you:",
    "  ",
    "# Tiller\n",
    "é𝄞",
)
PIECES = (
    piece("block", "one\n\ntwo"), piece("more", "\nthree"), piece("line", "> four"),
    piece("you", "five\nsix"), sent("words"), sent("a\nwords"),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(10))
def test_whatever_the_file_is_nothing_is_taken_out_and_all_comes_in(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a script, not a secret
    for _ in range(100):
        check_one(chance)


def check_one(chance: random.Random) -> None:
    text = "".join(chance.choices(PARTS, k=chance.randrange(12)))
    pieces = chance.choices(PIECES, k=chance.randrange(1, 5))
    after = grown(text, pieces, tail=chance.choice(["", tail_of(text)]))
    rest = iter(words_of(after))
    assert all(word in rest for word in words_of(text)), (text, pieces, after)
    for one in pieces:
        for row in one.text.strip().split("\n"):
            assert row in after
    draft = draft_of(after)
    assert draft is not None
    assert grown(after, [], tail="") == after


def words_of(text: str) -> list[str]:
    return re.findall(r"\S+", text)


STARTED = "> task t1: find it · started"
ENDED = ChatPiece(kind="line", text=f"{STARTED} · completed\n>   It is there.", extends=STARTED)
HAS_TASK = f"{HEAD}## You\n\nfind\n\n## Tiller\n\n{STARTED}\n\nI go\n\n## You\n\n{STARTED}"


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_the_end_of_a_task_is_added_to_its_line_while_an_answer_grows(end: str) -> None:
    text = HAS_TASK.replace("\n", end)
    pieces = [piece("more", " on"), ENDED, piece("more", " now.")]
    expected = HAS_TASK.replace(STARTED, ENDED.text, 1).replace("I go", "I go on now.")
    assert grown(text, pieces, tail="I go") == expected.replace("\n", end)


def test_a_task_that_begins_and_ends_before_it_was_written_is_one_line() -> None:
    text = grown(ANSWERED, [piece("line", STARTED), ENDED], tail="I look.")
    assert text == ANSWERED.replace("I look.", f"I look.\n\n{ENDED.text}")


def test_the_end_of_a_task_whose_line_was_changed_is_a_line_of_its_own() -> None:
    text = HAS_TASK.replace(f"{STARTED}\n", f"{STARTED}!\n")
    assert grown(text, [ENDED], tail="") == text.replace("I go", f"I go\n\n{ENDED.text}")
