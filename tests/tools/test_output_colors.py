"""Colours of commands: the spans name the same text as the plain output, whatever the command wrote."""

import re

import pytest
from hypothesis import given, strategies as st

from agent_core.kernel.text import plain
from agent_core.tools.output_colors import MOST_SEQUENCES, MOST_SPANS, color_spans

PIECES = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.builds("\x1b[{}m".format, st.text("0123456789;:", max_size=12)),
        st.sampled_from(
            ["\x1b[0m", "\x1b[31m", "\r", "\r\n", "\n", "\x1b[2K", "\x1b]0;t\x07", "\x1b["]
        ),
        st.sampled_from(["\U0001f642", "\u202e", "é", "語", "\x07"]),
    ),
    max_size=40,
)


def units(text: str, start: int, end: int) -> str:
    """Return a part of a text by UTF-16 code units."""
    return text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * end].decode("utf-16-le")


@pytest.mark.parametrize(
    ("raw", "spans"),
    [
        ("plain", []),
        ("\x1b[31mred\x1b[0m plain", [("red", "31")]),
        ("\x1b[1;31mred\x1b[39m bold\x1b[m", [("red", "1;31"), (" bold", "1")]),
        ("\x1b[1m\x1b[2mdim\x1b[22m\n", [("dim", "1;2")]),
        ("\x1b[38;5;208;4mpalette\x1b[24m on", [("palette", "38;5;208;4"), (" on", "38;5;208")]),
        ("\x1b[48;2;1;2;3mrgb", [("rgb", "48;2;1;2;3")]),
        ("\x1b[38:2::1:2:3mcolons", [("colons", "38;2;1;2;3")]),
        ("\x1b[38;5mcut", []),
        ("\x1b[38;5;999mtoo large", []),
        ("\x1b[4:3mcurly", []),
        ("\x1b[92;103mbright", [("bright", "103;92")]),
        ("\x1b[31mover\nlines\x1b[0m", [("over\nlines", "31")]),
        ("\U0001f642\x1b[31m\U0001f642\x1b[32mg", [("\U0001f642", "31"), ("g", "32")]),
        ("\x1b[31mred\r\x1b[0m\nnext", [("red\r", "31")]),
        ("\x1b[31m\u202ehidden", []),
    ],
)
def test_the_colours_of_an_output_are_spans_of_its_text(
    raw: str, spans: list[tuple[str, str]]
) -> None:
    text = plain(raw)
    seen = [(units(text, start, end), style) for start, end, style in color_spans(raw, text)]
    assert seen == spans


def test_the_spans_of_an_end_begin_at_that_end() -> None:
    raw = "\x1b[31mone\ntwo\x1b[0m\nthree"
    assert color_spans(raw, "wo\nthree") == ((0, 2, "31"),)
    assert color_spans(raw, "three") == ()
    assert color_spans(raw, "another text") == ()


def test_only_the_last_spans_of_many_are_kept() -> None:
    raw = "".join(f"\x1b[{31 + number % 2}m{number}" for number in range(3 * MOST_SPANS))
    spans = color_spans(raw, plain(raw))
    assert len(spans) == MOST_SPANS
    assert spans[-1][1] == len(plain(raw))


def test_an_output_of_countless_sequences_has_no_colours() -> None:
    raw = "\x1b[31mx" * (MOST_SEQUENCES + 1)
    assert color_spans(raw, plain(raw)) == ()


@given(PIECES)
def test_spans_are_in_order_and_hold_nothing_that_a_terminal_would_obey(pieces: list[str]) -> None:
    raw = "".join(pieces)
    text = plain(raw)
    place = 0
    for start, end, style in color_spans(raw, text):
        assert place <= start < end
        assert re.fullmatch(r"\d{1,3}(;\d{1,3})*", style)
        assert units(text, start, end)
        place = end
    assert place <= len(text.encode("utf-16-le", "surrogatepass")) // 2
