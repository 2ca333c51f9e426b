"""A text is cut without a loss, at the same places while it grows, and code stays code."""

from itertools import accumulate

import pytest
from hypothesis import given, strategies as st

from tiller_server.channels.lark.cards.markdown import (
    PAGE_BYTES,
    PIECE_CHARS,
    inert,
    json_bytes,
    pages,
    split,
)

PARTS = st.lists(
    st.sampled_from(
        [
            "word ",
            "line\n",
            "\n\n",
            "```py\n",
            "```\n",
            "~~~~\n",
            "````\n",
            "`a` ",
            '"',
            "é",
            "語",
            "\x01",
        ]
    ),
    max_size=120,
)


@given(PARTS, st.integers(5, 60), st.integers(12, 200))
def test_the_sources_joined_are_the_text_and_each_keeps_the_limits(
    parts: list[str], limit: int, limit_bytes: int
) -> None:
    text = "".join(parts)
    pieces = list(split(text, limit=limit, limit_bytes=limit_bytes))
    assert "".join(piece.source for piece in pieces) == text
    assert all(len(piece.source) <= limit for piece in pieces)
    assert all(json_bytes(piece.source) <= limit_bytes for piece in pieces)


@given(PARTS, st.integers(5, 60), st.integers(12, 200))
def test_earlier_pieces_stay_while_a_text_grows(
    parts: list[str], limit: int, limit_bytes: int
) -> None:
    former: list[str] = []
    for text in accumulate(parts):
        pieces = [p.content for p in split(text, limit=limit, limit_bytes=limit_bytes)]
        assert pieces[: max(0, len(former) - 1)] == former[:-1]
        former = pieces


def test_code_that_is_cut_is_closed_and_opened_again() -> None:
    text = "Look:\n```python\n" + "x = 1\n" * 8 + "```\nDone.\n"
    first, second, *_ = split(text, limit=50, limit_bytes=1000)
    assert first.content == "Look:\n```python\n" + "x = 1\n" * 5 + "```"
    assert second.content == "```python\n" + "x = 1\n" * 3 + "```\nDone.\n"


def test_a_text_is_cut_at_an_empty_line_outside_of_code() -> None:
    text = "One.\n\nTwo is longer.\n\n```\na\n\nb\n```\n" + "end " * 20
    first = next(split(text, limit=40, limit_bytes=1000))
    assert first.source == "One.\n\nTwo is longer.\n\n"


def test_a_page_fits_into_a_card_and_a_piece_into_an_element() -> None:
    text = "語" * 9_000 + "\n" * 9_000 + '"' * 9_000 + "x" * 30_000
    split_pages = pages(text)
    assert "".join(piece.source for page in split_pages for piece in page) == text
    assert all(len(piece.source) <= PIECE_CHARS for page in split_pages for piece in page)
    sizes = [sum(json_bytes(piece.content) for piece in page) for page in split_pages]
    assert max(sizes) <= PAGE_BYTES


@pytest.mark.parametrize("text", ["```" + "x" * 30_000, "~" * 30_000, "`" * 30_000])
def test_a_fence_with_a_long_line_is_not_repeated_in_each_piece(text: str) -> None:
    split_pages = pages(text)
    assert "".join(piece.source for page in split_pages for piece in page) == text
    added = [piece.opening + piece.closing for page in split_pages for piece in page]
    assert max(map(len, added)) <= 150
    sizes = [sum(json_bytes(piece.content) for piece in page) for page in split_pages]
    assert max(sizes) <= PAGE_BYTES


def test_only_mentions_and_pictures_are_made_inert() -> None:
    same = "a < b, <b>, x![y], ![logo](img_v3_1), <attribute>"
    assert inert(same) == same
    assert inert("<AT id=all>") == "<\u200bAT id=all>"
