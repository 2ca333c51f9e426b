"""Two changes of one text: nothing of either is lost, nothing is guessed, and the time is bounded."""

import random
import shutil
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.workspace.diff.merge import Conflict, LineRange, MergeResult, merge
from tests.support.harness.sizes import at_size
from tests.support.harness.untraced import processor_s

ABC = "a\nb\nc\nd\n"


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        pytest.param(ABC, "A\nb\nc\nd\n", "a\nb\nc\nD\n", "A\nb\nc\nD\n", id="far apart"),
        pytest.param(ABC, "A\nb\nc\nd\n", "a\nB\nc\nd\n", "A\nB\nc\nd\n", id="neighbours"),
        pytest.param(ABC, "a\nc\nd\n", "a\nb\nx\nc\nd\n", "a\nx\nc\nd\n", id="below a deletion"),
        pytest.param(
            ABC, "a\nB\nc\nd\n", "a\nx\nb\nc\nd\n", "a\nx\nB\nc\nd\n", id="above a change"
        ),
        pytest.param(ABC, "A\nb\nc\nd\n", "A\nb\nc\nd\n", "A\nb\nc\nd\n", id="the same"),
        pytest.param(
            ABC, "A\nb\nc\nd\n", "A\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", id="partly the same"
        ),
        pytest.param(
            ABC, "a\nx\nb\nc\nd\n", "a\nx\nb\nc\nD\n", "a\nx\nb\nc\nD\n", id="one insertion"
        ),
        pytest.param(
            "a\n\nb\n\nc\n",
            "A\n\nb\n\nx\n\nc\n",
            "a\n\nb\n\nx\n\nc\n",
            "A\n\nb\n\nx\n\nc\n",
            id="one insertion among equal lines",
        ),
        pytest.param(
            "a\nb\n\nx\n\nc\n",
            "A\nb\n\nc\n",
            "a\nb\n\nc\n",
            "A\nb\n\nc\n",
            id="one deletion among equal lines",
        ),
        pytest.param("f(a, b)\n", "g(a, b)\n", "f(a, b, c)\n", "g(a, b, c)\n", id="in one line"),
        pytest.param("one two\n", "1 two\n", "one 2\n", "1 2\n", id="words of one line"),
        pytest.param("a\nb\n", "a\r\nb\r\n", "a\nB\n", "a\r\nB\r\n", id="line ends and text"),
        pytest.param(
            "a\nb\n", "a\r\nb\r\n", "a\nb\nc\n", "a\r\nb\r\nc\n", id="line ends, a line more"
        ),
        pytest.param(
            "a\nb\nc\n", "a\rb\rc\r", "x\na\nb\nc\n", "x\na\rb\rc\r", id="another end, above"
        ),
        pytest.param("a", "a\n", "A", "A\n", id="a final newline and text"),
        pytest.param(
            "a\u2028b\nc\n", "A\u2028b\nc\n", "a\u2028B\nc\n", "A\u2028B\nc\n", id="U+2028"
        ),
        pytest.param("", "a\n", "", "a\n", id="from nothing"),
    ],
)
def test_what_both_sides_did_is_in_the_text(
    base: str, ours: str, theirs: str, expected: str
) -> None:
    assert merge(base, ours, theirs) == MergeResult(text=expected)
    assert merge(base, theirs, ours) == MergeResult(text=expected)


@pytest.mark.parametrize(
    ("base", "ours", "theirs"),
    [
        pytest.param(ABC, "a\nB\nc\nd\n", "a\nX\nc\nd\n", id="one line"),
        pytest.param(ABC, "a\nc\nd\n", "a\nb!\nc\nd\n", id="deleted and changed"),
        pytest.param(ABC, "a\nx\nb\nc\nd\n", "a\ny\nb\nc\nd\n", id="two insertions at one place"),
        pytest.param("", "a\n", "b\n", id="two first lines"),
        pytest.param("foobar\n", "zoobar\n", "foobaz\n", id="one word"),
        pytest.param("f(a)\n", "f(a, b)\n", "f(a, c)\n", id="one place of a line"),
        pytest.param("a\nb\nc\nd\n", "x\ny\nz\n", "a\nb\nc!\nd\n", id="rewritten and changed"),
        pytest.param("a\n", "a\r\n", "a\r", id="two other line ends"),
    ],
)
def test_what_cannot_be_both_is_a_conflict(base: str, ours: str, theirs: str) -> None:
    found, other_way = merge(base, ours, theirs), merge(base, theirs, ours)
    assert len(found.conflicts) == len(other_way.conflicts) == 1
    assert found.text == theirs
    (one,), (other,) = found.conflicts, other_way.conflicts
    assert (one.base, one.ours, one.theirs) == (other.base, other.theirs, other.ours)


def test_a_conflict_names_its_lines_in_each_text() -> None:
    merged = merge("a\nb\r\nc\n", "new\na\nB\r\nc\nx\n", "a\nb2\r\nb3\r\nc\n")
    assert merged.text == "new\na\nb2\r\nb3\r\nc\nx\n"
    assert merged.conflicts == (
        Conflict(
            base=LineRange(start=1, end=2, text="b\r\n"),
            ours=LineRange(start=2, end=3, text="B\r\n"),
            theirs=LineRange(start=1, end=3, text="b2\r\nb3\r\n"),
        ),
    )


TEXTS = st.text(alphabet=st.sampled_from("ab (\n\r\u2028\u00e9\U0001f600"), max_size=40)


@given(TEXTS, TEXTS)
def test_a_side_that_did_nothing_leaves_the_other_as_it_is(base: str, other: str) -> None:
    assert merge(base, other, base) == merge(base, base, other) == MergeResult(text=other)
    assert merge(base, other, other) == MergeResult(text=other)


@given(TEXTS, TEXTS, TEXTS)
def test_the_order_of_the_sides_does_not_matter(base: str, ours: str, theirs: str) -> None:
    one, other = merge(base, ours, theirs), merge(base, theirs, ours)
    assert len(one.conflicts) == len(other.conflicts)
    for mine, yours in zip(one.conflicts, other.conflicts, strict=True):
        assert (mine.base, mine.ours, mine.theirs) == (yours.base, yours.theirs, yours.ours)
    if not one.conflicts:
        assert one == other


@given(TEXTS, TEXTS, TEXTS)
def test_the_lines_of_a_conflict_are_those_of_its_texts(base: str, ours: str, theirs: str) -> None:
    for one in merge(base, ours, theirs).conflicts:
        for lines, text in ((one.base, base), (one.ours, ours), (one.theirs, theirs)):
            cut = _lines(text)
            assert "".join(cut[lines.start : lines.end]) == lines.text


def _lines(text: str) -> list[str]:
    """Cut at line ends, one character at a time."""
    lines = [""]
    for at, char in enumerate(text):
        lines[-1] += char
        if char == "\n" or (char == "\r" and text[at + 1 : at + 2] != "\n"):
            lines.append("")
    return [line for line in lines if line]


class Scribe:
    """Somebody who edits; every character they type is one that nobody has typed before."""

    def __init__(self, chosen: random.Random, fresh: Callable[[], str]) -> None:
        self.chosen = chosen
        self.fresh = fresh
        self.typed: set[str] = set()
        self.deleted: set[str] = set()

    def edit(self, text: str) -> str:
        start = self.chosen.randint(0, len(text))
        end = min(len(text), start + self.chosen.choice([0, 0, 0, 1, 2, 7, 30]))
        new = "".join(
            self.chosen.choice(["\n", " ", self._own()])
            for _ in range(self.chosen.choice([0, 1, 3, 9]))
        )
        self.deleted |= set(text[start:end])
        return text[:start] + new + text[end:]

    def _own(self) -> str:
        self.typed.add(char := self.fresh())
        return char


def marked(chosen: random.Random, *, lines: int) -> tuple[str, Callable[[], str]]:
    """Make a text of unique characters, and the source of more: half of them letters, half not."""
    letters, signs = count(0x4E00), count(0xF0000)

    def fresh() -> str:
        return chr(next(letters) if chosen.random() < 0.5 else next(signs))

    def row() -> str:
        return "".join(chosen.choice([fresh(), " "]) for _ in range(chosen.randint(0, 9)))

    return "".join(f"{row()}\n" for _ in range(lines)), fresh


def kept(base: str, ours: Scribe, theirs: Scribe, edited: tuple[str, str], text: str) -> None:
    """Fail unless each character is there once, or was deleted by a side."""
    for char in {*base, *ours.typed, *theirs.typed} - {"\n", " "}:
        times = text.count(char)
        if char in base:
            wanted = all(char in side for side in edited)
        else:
            wanted = any(char in side for side in edited)
        assert times == wanted, (char, times)


@pytest.mark.timeout(at_size(ci=20, campaign=600))
@settings(max_examples=at_size(ci=200, campaign=20_000))
@given(st.randoms(use_true_random=False), st.integers(0, 8), st.integers(1, 4), st.integers(1, 4))
def test_each_character_of_both_sides_is_there_or_was_deleted_by_one(
    chosen: random.Random, lines: int, more: int, others: int
) -> None:
    base, fresh = marked(chosen, lines=lines)
    ours, theirs = Scribe(chosen, fresh), Scribe(chosen, fresh)
    mine = yours = base
    for _ in range(more):
        mine = ours.edit(mine)
    for _ in range(others):
        yours = theirs.edit(yours)
    merged = merge(base, mine, yours)
    if merged.conflicts:
        places = [one.theirs.text for one in merged.conflicts]
        assert all(place in merged.text for place in places)
        for char in theirs.typed:
            assert merged.text.count(char) == yours.count(char)
    else:
        kept(base, ours, theirs, (mine, yours), merged.text)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=at_size(ci=25, campaign=1_000))
@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_what_git_merges_is_merged_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, chosen: random.Random, lines: int
) -> None:
    base, fresh = marked(chosen, lines=lines)
    ours, theirs = Scribe(chosen, fresh), Scribe(chosen, fresh)
    mine, yours = ours.edit(base), theirs.edit(base)
    merged = merge(base, mine, yours)
    git = merged_by_git(tmp_path_factory.mktemp("git"), base, mine, yours)
    if git is not None:
        assert merged == MergeResult(text=git)


def merged_by_git(folder: Path, base: str, ours: str, theirs: str) -> str | None:
    for name, text in (("ours", ours), ("base", base), ("theirs", theirs)):
        (folder / name).write_text(text, encoding="utf-8", newline="")
    done = subprocess.run(
        ["git", "merge-file", "-p", "ours", "base", "theirs"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    return done.stdout.decode() if done.returncode == 0 else None


@pytest.mark.parametrize("kind", ["many changes", "repeated lines", "rewritten", "one line"])
def test_the_time_is_bounded(kind: str) -> None:
    chosen = random.Random(11)  # noqa: S311 - the same text each time
    ours = theirs = lines = [f"line {number} of the text\n" for number in range(50_000)]
    match kind:
        case "many changes":
            ours = [f"> {line}" if at % 33 == 0 else line for at, line in enumerate(lines)]
            theirs = [f"{line[:-1]} <\n" if at % 35 == 0 else line for at, line in enumerate(lines)]
        case "repeated lines":
            lines = [chosen.choice("{}x") + "\n" for _ in lines]
            ours = [line for line in lines if chosen.random() < 0.97]
            theirs = [one for line in lines for one in ([line] * chosen.choice([1] * 30 + [2]))]
        case "rewritten":
            ours = [line[::-1] + "\n" for line in lines]
            theirs = [f"{line[:-1]}!\n" if at % 17 == 0 else line for at, line in enumerate(lines)]
        case _:
            lines = ["x" * 2_000_000]
            ours, theirs = ["y", *lines], [*lines, "z"]
    made: list[MergeResult] = []
    took = processor_s(lambda: made.append(merge("".join(lines), "".join(ours), "".join(theirs))))
    assert made[0].text
    assert took < 8.0
