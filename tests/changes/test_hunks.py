"""Hunks: what is the agent's in a text, whoever changes it afterwards."""

from random import Random

import pytest

from agent_core.changes.hunks import (
    Hunk,
    HunkOrigin,
    Hunks,
    edited_by_agent,
    edited_by_user,
    revert_hunks,
    settled,
)
from agent_core.kernel import RunId, ToolCallId
from tests.support.harness.sizes import at_size


def maker(index: int = 0) -> HunkOrigin:
    return HunkOrigin(
        change=f"c{index}", edit=f"e{index}", run=RunId("r"), call=ToolCallId("t"), index=index
    )


def lines(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)


def shown(text: str, hunks: Hunks) -> list[tuple[str, str, str]]:
    """Give of each hunk what was there, what is there now, and its state."""
    return [(one.old, text[one.start : one.end], one.state) for one in hunks]


def made(*texts: str) -> Hunks:
    """Follow the agent from text to text."""
    hunks: Hunks = ()
    for at in range(1, len(texts)):
        hunks = edited_by_agent(hunks, texts[at - 1], texts[at], maker(at))
    return hunks


ABC = lines("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param((ABC, ABC), [], id="nothing"),
        pytest.param(
            (ABC, ABC.replace("b\n", "B\n").replace("e\n", "")),
            [("b\n", "B\n", "pending"), ("e\n", "", "pending")],
            id="two at once",
        ),
        pytest.param(
            (ABC, ABC.replace("b", "B"), ABC.replace("b", "B").replace("d", "D")),
            [("b\n", "B\n", "pending"), ("d\n", "D\n", "pending")],
            id="one after the other",
        ),
        pytest.param(
            (ABC, ABC.replace("b", "B"), ABC.replace("b", "BB")),
            [("b\n", "BB\n", "pending")],
            id="the same line again",
        ),
        pytest.param((ABC, ABC.replace("b", "B"), ABC), [], id="and back"),
        pytest.param((ABC, ABC.replace("b\n", ""), ABC), [], id="deleted and brought back"),
        pytest.param(
            (ABC, ABC.replace("b\n", ""), ABC.replace("b\nc\n", "")),
            [("b\nc\n", "", "pending")],
            id="deleted side by side",
        ),
        pytest.param(
            (ABC, ABC.replace("b", "B"), ABC.replace("b\nc", "B\nC")),
            [("b\n", "B\n", "pending"), ("c\n", "C\n", "pending")],
            id="neighbours stay two",
        ),
        pytest.param(("", "x"), [("", "x", "pending")], id="a new file"),
        pytest.param(("x\ny", ""), [("x\ny", "", "pending")], id="a deleted file"),
        pytest.param(
            ("a\nb", "a\nb\nc"), [("b", "b\nc", "pending")], id="behind a last line without end"
        ),
    ],
)
def test_edits_of_the_agent_become_hunks(
    texts: tuple[str, ...], expected: list[tuple[str, str, str]]
) -> None:
    assert shown(texts[-1], made(*texts)) == expected


@pytest.mark.parametrize(
    ("agent", "user", "expected"),
    [
        pytest.param(
            ABC.replace("c", "C"),
            lines("new", "a", "b", "C", "d", "e"),
            [("c\n", "C\n", "pending")],
            id="a line above",
        ),
        pytest.param(
            ABC.replace("c", "C"),
            lines("a", "b", "C", "new", "d", "e"),
            [("c\n", "C\n", "pending")],
            id="a line right below",
        ),
        pytest.param(
            ABC.replace("c", "C"),
            lines("a", "b", "Cc", "d", "e"),
            [("c\n", "Cc\n", "userEdited")],
            id="the line itself",
        ),
        pytest.param(ABC.replace("c", "C"), ABC, [("c\n", "c\n", "rejected")], id="taken back"),
        pytest.param(
            ABC.replace("c\n", ""), ABC, [("c\n", "c\n", "rejected")], id="a deletion taken back"
        ),
        pytest.param(
            ABC.replace("c\n", ""),
            lines("a", "b", "c", "D", "e"),
            [("c\n", "c\nD\n", "userEdited")],
            id="a deletion taken back, and more",
        ),
        pytest.param(
            ABC.replace("c", "C\nC2"),
            lines("a", "b", "d", "e"),
            [("c\n", "", "orphaned")],
            id="deleted by the user",
        ),
        pytest.param(
            ABC.replace("c\n", ""),
            lines("a", "b", "new", "d", "e"),
            [("c\n", "", "pending")],
            id="a line where one was deleted",
        ),
    ],
)
def test_edits_of_the_user_are_followed(
    agent: str, user: str, expected: list[tuple[str, str, str]]
) -> None:
    hunks = edited_by_user(made(ABC, agent), agent, user)
    assert shown(user, hunks) == expected


def test_what_was_accepted_is_where_a_later_edit_begins() -> None:
    first = ABC.replace("b", "B")
    hunks = made(ABC, first)
    hunks = settled(hunks, {hunks[0].id})
    assert [one.state for one in hunks] == ["accepted"]
    second = ABC.replace("b", "BB")
    assert shown(second, edited_by_agent(hunks, first, second, maker(2))) == [
        ("B\n", "BB\n", "pending")
    ]


def test_a_rejected_hunk_is_gone_from_the_text_and_the_others_stay() -> None:
    text = lines("A", "b", "c2", "c3", "d", "E")
    hunks = made(ABC, text)
    assert len(hunks) == 3
    after, left = revert_hunks(text, hunks, {hunks[1].id})
    assert after == lines("A", "b", "c", "d", "E")
    assert shown(after, left) == [
        ("a\n", "A\n", "pending"),
        ("c\n", "c\n", "rejected"),
        ("e\n", "E\n", "pending"),
    ]
    assert revert_hunks(after, left, {one.id for one in hunks})[0] == ABC


@pytest.mark.parametrize(
    ("before", "agent", "now", "expected"),
    [
        pytest.param("a\nb", "a\nB\n", "a\nB\nmine\n", "a\nb\nmine\n", id="an end is added"),
        pytest.param("a\r\nb", "a\r\nB\r\n", "a\r\nB\r\nm", "a\r\nb\r\nm", id="as the file has it"),
        pytest.param("a\nb", "a\n", "a\n", "a\nb", id="no end is added at the end"),
    ],
)
def test_a_last_line_gets_an_end_when_it_is_not_the_last_any_more(
    before: str, agent: str, now: str, expected: str
) -> None:
    hunks = edited_by_user(made(before, agent), agent, now)
    assert revert_hunks(now, hunks, {one.id for one in hunks})[0] == expected


def test_an_id_is_the_same_whenever_it_is_worked_out() -> None:
    text = ABC.replace("b", "B").replace("d", "D")
    once, again = made(ABC, text), made(ABC, text)
    assert [one.id for one in once] == [one.id for one in again]
    assert len({one.id for one in once}) == 2


@pytest.mark.parametrize("seed", range(at_size(ci=4, campaign=40)))
def test_whatever_happens_the_agents_lines_come_out_and_the_users_stay(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret
    for _ in range(100):
        _history(random)


def _history(random: Random) -> None:
    """Lines of the user are unique; where the agent did not touch them they are there at the end."""
    original = [random.choice("abc") for _ in range(random.randrange(8))]
    text, hunks = lines(*original), ()
    by_user: set[str] = set()
    for step in range(random.randrange(1, 8)):
        rows = text.splitlines()
        if random.random() < 0.6:
            after = _agent_edit(random, rows, by_user)
            hunks = edited_by_agent(hunks, text, after, maker(step))
        else:
            at = random.randrange(len(rows) + 1)
            by_user.add(name := f"u{step}")
            after = lines(*rows[:at], name, *rows[at:])
            hunks = edited_by_user(hunks, text, after)
        text = after
        _check(text, hunks)
    if not by_user:
        assert revert_hunks(text, hunks, {one.id for one in hunks})[0] == lines(*original)
    if any(by_user.intersection(f"{one.old}{one.new}".splitlines()) for one in hunks):
        return  # lines that changed places: a line of the user counts as deleted here and added there
    back, _ = revert_hunks(text, hunks, {one.id for one in hunks})
    assert by_user <= set(back.splitlines())


def _agent_edit(random: Random, rows: list[str], by_user: set[str]) -> str:
    """Replace, add or delete a few lines, none of the user's."""
    rows = list(rows)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(rows) + 1)
        if at < len(rows) and rows[at] not in by_user and random.random() < 0.6:
            rows[at : at + 1] = random.choices("abcxyz", k=random.randrange(3))
        else:
            rows.insert(at, random.choice("abcxyz"))
    return lines(*rows)


def _check(text: str, hunks: tuple[Hunk, ...]) -> None:
    end = 0
    for one in hunks:
        assert 0 <= one.start <= one.end <= len(text)
        if one.is_pending:
            assert text[one.start : one.end] == one.new
            assert one.start >= end
            end = one.end
    assert len({one.id for one in hunks}) == len(hunks)
