"""Cutting text never breaks a character, and its counts are exact."""

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.kernel.text import (
    Truncation,
    byte_count,
    count_lines,
    cut_bytes,
    cut_bytes_from_end,
    format_size,
    truncate_head,
    truncate_line,
    truncate_tail,
)
from tests.support.harness.sizes import at_size

MANY = settings(max_examples=at_size(ci=300, campaign=20_000))


def _facts(cut: Truncation) -> tuple[str, str | None, int, int]:
    return cut.content, cut.truncated_by, cut.total_lines, cut.output_lines


@pytest.mark.parametrize(
    ("text", "limits", "expected"),
    [
        ("a\nb\n", {"max_lines": 2}, ("a\nb\n", None, 2, 2)),
        ("a\nb\nc", {"max_lines": 2}, ("a\nb", "lines", 3, 2)),
        ("aaaa\nbb\ncc", {"max_bytes": 7}, ("aaaa\nbb", "bytes", 3, 2)),
        ("", {}, ("", None, 0, 0)),
        ("a\n", {"max_bytes": 1}, ("a", "bytes", 1, 1)),
        ("a\n\n\n", {"max_lines": 2}, ("a\n", "lines", 3, 2)),
    ],
)
def test_the_head_has_whole_lines_only(text, limits, expected) -> None:
    assert _facts(truncate_head(text, **limits)) == expected


@pytest.mark.parametrize(
    ("text", "limits", "expected"),
    [
        ("a\nb\nc\n", {"max_lines": 2}, ("b\nc", "lines", 3, 2)),
        ("x\nééééé", {"max_bytes": 5}, ("éé", "bytes", 2, 1)),
        ("aa\nbb", {"max_bytes": 4}, ("bb", "bytes", 2, 1)),
        ("", {}, ("", None, 0, 0)),
        ("aa\n", {"max_bytes": 2}, ("aa", "bytes", 1, 1)),
    ],
)
def test_the_tail_has_whole_lines_or_the_end_of_the_last(text, limits, expected) -> None:
    assert _facts(truncate_tail(text, **limits)) == expected


def test_a_small_text_comes_back_as_it_is() -> None:
    text = "0123456789\n" * 10
    for cut in (truncate_head(text), truncate_tail(text)):
        assert cut == Truncation(
            content=text,
            truncated=False,
            truncated_by=None,
            total_lines=10,
            total_bytes=110,
            output_lines=10,
            output_bytes=110,
            max_lines=2000,
            max_bytes=51200,
        )


def test_the_head_is_cut_by_lines() -> None:
    cut = truncate_head("\n".join(f"line {n}" for n in range(1, 2501)), max_lines=2000)
    assert cut.content.endswith("\nline 2000")
    assert (cut.truncated_by, cut.total_lines, cut.output_lines) == ("lines", 2500, 2000)


def test_the_head_is_cut_by_bytes() -> None:
    cut = truncate_head("\n".join("x" * 1023 for _ in range(100)), max_bytes=50_000)
    assert (cut.truncated_by, cut.output_lines, cut.output_bytes) == ("bytes", 48, 48 * 1024 - 1)


def test_a_first_line_that_is_too_long_leaves_nothing() -> None:
    cut = truncate_head("x" * 60_000 + "\nshort")
    assert (cut.content, cut.truncated, cut.first_line_exceeds_limit) == ("", True, True)


def test_the_tail_is_cut_by_lines() -> None:
    cut = truncate_tail("\n".join(f"line {n}" for n in range(1, 3001)), max_lines=2000)
    assert cut.content.startswith("line 1001\n")
    assert (cut.truncated_by, cut.total_lines, cut.output_lines) == ("lines", 3000, 2000)


def test_the_tail_of_150_lines_leaves_out_exactly_50() -> None:
    cut = truncate_tail("\n".join(str(n) for n in range(1, 151)) + "\n", max_lines=100)
    assert cut.content.startswith("51\n")
    assert (cut.total_lines, cut.output_lines) == (150, 100)


def test_the_tail_is_cut_by_bytes() -> None:
    cut = truncate_tail("\n".join("x" * 1023 for _ in range(100)), max_bytes=50_000)
    assert (cut.truncated_by, cut.output_lines, cut.output_bytes) == ("bytes", 48, 48 * 1024 - 1)


def test_a_last_line_that_is_too_long_is_cut_between_characters() -> None:
    cut = truncate_tail("first\n" + "你好" * 20_000)
    assert (cut.last_line_partial, cut.truncated_by, cut.output_lines) == (True, "bytes", 1)
    assert cut.output_bytes == 51_198
    assert set(cut.content) == {"你", "好"}


def test_what_just_fits_is_not_cut() -> None:
    lines = "\n".join("x" for _ in range(2000))
    assert truncate_tail(lines, max_lines=2000).truncated is False
    assert truncate_head(lines, max_lines=2000).truncated is False
    assert truncate_tail("x" * 50_000, max_bytes=50_000).truncated is False
    assert truncate_head("x" * 50_000, max_bytes=50_000).truncated is False
    assert truncate_tail("x" * 50_001, max_bytes=50_000).truncated is True


def test_a_short_line_stays() -> None:
    assert truncate_line("x" * 100, max_chars=500).content == "x" * 100


def test_a_long_line_is_marked() -> None:
    cut = truncate_line("x" * 800, max_chars=500)
    assert (cut.content, cut.truncated_by) == ("x" * 500 + "... [truncated]", "chars")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (1023, "1023B"), (1024, "1.0KB"), (51200, "50.0KB"), (1048576, "1.0MB")],
)
def test_sizes_are_written_for_people(size, text) -> None:
    assert format_size(size) == text


TEXTS = st.text(st.sampled_from("ab\n\r é你🌍"), max_size=200)
LIMITS = st.integers(0, 60)


@MANY
@given(TEXTS, LIMITS, LIMITS)
def test_the_head_is_a_beginning_within_the_limits(text: str, lines: int, size: int) -> None:
    cut = truncate_head(text, max_lines=lines, max_bytes=size)
    assert text.startswith(cut.content)
    _check_counts(cut, text, lines=lines, size=size)
    if cut.truncated and cut.content:
        assert text[len(cut.content)] == "\n"


@MANY
@given(TEXTS, LIMITS, LIMITS)
def test_the_tail_is_an_end_within_the_limits(text: str, lines: int, size: int) -> None:
    cut = truncate_tail(text, max_lines=lines, max_bytes=size)
    assert (text if not cut.truncated else text.removesuffix("\n")).endswith(cut.content)
    _check_counts(cut, text, lines=lines, size=size)


@MANY
@given(TEXTS, LIMITS)
def test_cutting_by_bytes_keeps_whole_characters(text: str, limit: int) -> None:
    head, tail = cut_bytes(text, limit), cut_bytes_from_end(text, limit)
    assert text.startswith(head)
    assert text.endswith(tail)
    for part in (head, tail):
        assert byte_count(part) <= limit
        assert part == text or byte_count(part) > limit - 4


@MANY
@given(st.text(st.sampled_from("ab\t é你🌍\u0301"), max_size=120), LIMITS)
def test_the_beginning_of_a_line_has_exactly_as_many_characters(line: str, limit: int) -> None:
    cut = truncate_line(line, max_chars=limit)
    kept = cut.content.removesuffix("... [truncated]") if cut.truncated else cut.content
    assert kept == line[:limit]
    assert (cut.truncated, cut.truncated_by) == (
        (True, "chars") if len(line) > limit else (False, None)
    )
    assert (cut.total_bytes, cut.output_bytes) == (byte_count(line), byte_count(cut.content))


@MANY
@given(TEXTS, LIMITS, LIMITS)
def test_nothing_more_would_have_fitted(text: str, lines: int, size: int) -> None:
    rows = text.split("\n")[:-1] if text.endswith("\n") else text.split("\n") if text else []
    for cut, kept in (
        (truncate_head(text, max_lines=lines, max_bytes=size), rows),
        (truncate_tail(text, max_lines=lines, max_bytes=size), rows[::-1]),
    ):
        if not cut.truncated or cut.last_line_partial:
            continue
        room = [
            count
            for count in range(len(rows) + 1)
            if count <= lines and byte_count("\n".join(kept[:count])) <= size
        ]
        assert cut.output_lines == max(room)


def _check_counts(cut: Truncation, text: str, *, lines: int, size: int) -> None:
    assert cut.output_bytes == byte_count(cut.content)
    assert (cut.total_lines, cut.total_bytes) == (count_lines(text), byte_count(text))
    assert cut.truncated == (cut.total_lines > lines or cut.total_bytes > size)
    if cut.truncated:
        assert cut.output_lines <= lines or cut.last_line_partial
        assert cut.output_bytes <= size
