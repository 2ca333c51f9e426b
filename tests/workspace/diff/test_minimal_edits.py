"""Minimal edits: they make the target, touch no more than they must, and cost a bounded time."""

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from agent_core.workspace.diff.minimal_edits import TextEdit, line_hunks, lines_of, minimal_edits

TEXTS = st.text(alphabet=st.sampled_from("abc\n\r \u2028\u00e9\U0001f600"), max_size=60)


def applied(old: str, edits: list[TextEdit]) -> str:
    for one in reversed(edits):
        old = old[: one.start] + one.new_text + old[one.end :]
    return old


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("same\n", "same\n", []),
        ("", "a\n", [(0, 0, "a\n")]),
        # Nothing is put behind the last line end if it can be put before it.
        ("a\n", "a\nb\n", [(1, 1, "\nb")]),
        ("a\r\n", "a\r\nb\r\n", [(1, 1, "\r\nb")]),
        ("a\nb\n", "a\n", [(1, 3, "")]),
        ("a\n", "a\nb", [(2, 2, "b")]),
        ("a\r\n", "a\r\nb\n", [(3, 3, "b\n")]),
        ("a\n", "", [(0, 2, "")]),
        ("one\ntwo\nthree\n", "one\ntwo!\nthree\n", [(7, 7, "!")]),
        ("def f():\n    return 1\n", "def f():\n    return 22\n", [(20, 21, "22")]),
        ("a\nc\n", "a\nb\nc\n", [(2, 2, "b\n")]),
        ("a\nb\nc\n", "a\nc\n", [(2, 4, "")]),
        ("a\nb\nc\nd\n", "A\nb\nc\nD\n", [(0, 1, "A"), (6, 7, "D")]),
        ("x1\nx2\n", "y1\ny2\n", [(0, 1, "y"), (3, 4, "y")]),
        # A line end is replaced as a whole, never cut in two.
        ("a\nb", "a\r\nb", [(1, 2, "\r\n")]),
        ("a\r\nb", "a\nb", [(1, 3, "\n")]),
        ("a\r\nb", "a\rb", [(1, 3, "\r")]),
        ("a\r\nb\r\n", "a\r\nx\r\nb\r\n", [(3, 3, "x\r\n")]),
    ],
)
def test_only_what_differs_is_edited(
    old: str, new: str, expected: list[tuple[int, int, str]]
) -> None:
    wanted = [TextEdit(start=start, end=end, new_text=text) for start, end, text in expected]
    assert minimal_edits(old, new) == wanted


@given(TEXTS, TEXTS)
def test_the_edits_make_the_target_and_never_cut_a_line_end(old: str, new: str) -> None:
    edits = minimal_edits(old, new)
    assert applied(old, edits) == new
    for one in edits:
        assert not old.startswith("\r\n", one.start - 1) or one.start == 0
        assert not old.startswith("\r\n", one.end - 1) or one.end == 0
    assert all(before.end < after.start for before, after in pairwise(edits))


@given(st.lists(st.sampled_from("abcde"), max_size=30), st.lists(st.sampled_from("abcde")))
def test_hunks_tell_exactly_which_lines_differ(old: list[str], new: list[str]) -> None:
    rebuilt: list[str] = []
    done = 0
    for hunk in line_hunks(old, new):
        assert hunk.old_start > done or not rebuilt or hunk.old_start == 0
        rebuilt += old[done : hunk.old_start] + new[hunk.new_start : hunk.new_end]
        done = hunk.old_end
    assert rebuilt + old[done:] == new


def test_far_changes_among_repeated_lines_stay_small() -> None:
    old = "{\n  x\n}\n" * 5_000
    new = "#\n" + old[: len(old) // 2 - 4] + "!" + old[len(old) // 2 - 4 :] + "#\n"
    edits = minimal_edits(old, new)
    assert applied(old, edits) == new
    assert sum(len(one.new_text) + one.end - one.start for one in edits) < 20


@pytest.mark.parametrize("kind", ["one line", "every third line", "shuffled", "other", "noise"])
def test_the_time_is_bounded(kind: str) -> None:
    chosen = random.Random(7)  # noqa: S311 - the same shuffle each time
    lines = [f"line {number} of the text\n" for number in range(10_000)]
    match kind:
        case "one line":
            old = "words and more words on a line\n" * 340_000
            new = old[:5_000_000] + "X" + old[5_000_001:]
        case "every third line":
            old = "".join(lines)
            new = "".join(f"> {line}" if at % 3 == 0 else line for at, line in enumerate(lines))
        case "shuffled":
            old = "".join(lines)
            chosen.shuffle(lines)
            new = "".join(lines)
        case "other":
            old = "".join(lines)
            new = "".join(f"{line[::-1]}\n" for line in lines)
        case _:
            old = "".join(chosen.choice("abc") + "\n" for _ in range(20_000))
            new = "".join(chosen.choice("abc") + "\n" for _ in range(20_000))
    started = time.thread_time()
    edits = minimal_edits(old, new)
    took = time.thread_time() - started
    assert applied(old, edits) == new if len(edits) < 4_000 else edits
    assert took < 5.0


def test_a_text_is_cut_at_line_ends_only_once() -> None:
    assert lines_of("a\r\nb\rc\n\nd") == ["a\r\n", "b\r", "c\n", "\n", "d"]
