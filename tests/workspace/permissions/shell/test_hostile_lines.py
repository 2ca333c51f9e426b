"""No text makes either reading raise, hang or run deep."""

import time

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.workspace.permissions.shell import PlainCommandLine, mentioned, read_command
from tests.support.harness.sizes import at_size
from tests.support.workspace.shell_lines import BARE, BLANKS, DOUBTFUL, JOINS, PROGRAMS, QUOTED

UNITS = (
    "(", "$(", "`", '"$(', "{ ", "<<A\n", "cat <<A$", "${", "((", "[[ ", "'", "a && ", "a | ", "!", "if ", "case x in ",
    "<(", "${a[", "$((", "\\\n", "\\", "a=", "*", "{a,", "@(", "x ", "\n", "f() ", '"', "\x00", '"\\`', "${#", "coproc ",
    "a;", "$[", "a=(", "== ", "sudo ", 'eval "$(', 'sh -c "', "x=aa;y=$x$x;", "x=$x$x;", "$'", "\ud800", "\U0001f600",
    'env -S "', ") ", "esac)", "env a b c|", "{a,b", "``", "eval a ", 'eval "a a" ', "<<-'E'\n",
)  # fmt: skip
SIZES = (8_192, at_size(ci=131_072, campaign=1_048_576))
MOST_S = 10.0
"""Time of the processor, ten times what a slow one needs; what grows with the square of the length takes minutes."""
PARTS = st.sampled_from((*PROGRAMS, *BARE, *QUOTED, *DOUBTFUL, *JOINS, *BLANKS, *UNITS))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("unit", UNITS, ids=ascii)
def test_a_long_hostile_line_is_answered_soon(unit: str) -> None:
    for size in SIZES:
        line = (unit * (size // len(unit) + 1))[:size]
        begun_s = time.thread_time()
        read_command(line)
        mentioned(line)
        assert time.thread_time() - begun_s < MOST_S


@settings(max_examples=at_size(ci=200, campaign=5000), deadline=None)
@given(st.one_of(st.text(st.characters()), st.lists(PARTS, max_size=30).map("".join)))
def test_any_text_gets_an_answer_and_what_is_plain_is_mentioned(text: str) -> None:
    read = read_command(text)
    found = mentioned(text)
    if isinstance(read, PlainCommandLine):
        assert set(read.commands) <= set(found)
        assert all(argv and argv[0] for argv in read.commands)


@settings(max_examples=at_size(ci=100, campaign=2000), deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["C", "M", "Z"]), min_size=1), min_size=1))
def test_words_in_single_quotes_come_back_as_they_are(words: list[str]) -> None:
    kept = [word for word in words if "'" not in word]
    line = " ".join(["program", *(f"'{word}'" for word in kept)])
    read = read_command(line)
    assert not isinstance(read, PlainCommandLine) or read.commands == (("program", *kept),)
    if line.isascii():
        assert isinstance(read, PlainCommandLine)
