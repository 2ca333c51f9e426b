"""Offsets and positions: the same place in both, whatever the encoding and the line ends."""

import time

from hypothesis import given, strategies as st

from tests.support.lsp import lsp_text
from tiller_server.lsp.documents.positions import LineIndex, PositionEncoding, positions

ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])
TEXTS = st.text(alphabet=st.sampled_from("ab \n\r\u00e9\u20ac\U0001f600\u2028\f"), max_size=40)


def test_positions_count_in_the_units_of_the_encoding() -> None:
    text = "a\U0001f600b\r\n\u00e9\rz"
    table: dict[PositionEncoding, list[tuple[int, int]]] = {
        "utf-8": [(0, 0), (0, 1), (0, 5), (0, 6), (0, 6), (1, 0), (1, 2), (2, 0), (2, 1)],
        "utf-16": [(0, 0), (0, 1), (0, 3), (0, 4), (0, 4), (1, 0), (1, 1), (2, 0), (2, 1)],
        "utf-32": [(0, 0), (0, 1), (0, 2), (0, 3), (0, 3), (1, 0), (1, 1), (2, 0), (2, 1)],
    }
    for encoding, places in table.items():
        lines = LineIndex(text, encoding)
        assert [lines.position(at) for at in range(len(text) + 1)] == places


def test_what_lies_beyond_an_end_is_moved_back_to_it() -> None:
    lines = LineIndex("ab\r\ncd\n", "utf-16")
    beyond = [(0, 99), (0, 4), (1, 3), (2, 0), (2, 5), (7, 0), (10**12, 10**12), (-1, 4), (1, -4)]
    assert [lines.offset(*place) for place in beyond] == [2, 2, 6, 7, 7, 7, 7, 0, 4]


def test_one_unit_beyond_crlf_is_where_vim_types_behind_the_carriage_return() -> None:
    for encoding in ("utf-8", "utf-16", "utf-32"):
        assert LineIndex("a\r\nb\n", encoding).offset(0, 2) == 2
        assert LineIndex("\r\nb\n", encoding).offset(0, 1) == 1


def test_a_place_inside_a_character_is_its_beginning() -> None:
    assert [LineIndex("x\U0001f600y", "utf-16").offset(0, at) for at in range(5)] == [0, 1, 1, 2, 3]
    found = [LineIndex("x\U0001f600y", "utf-8").offset(0, at) for at in range(8)]
    assert found == [0, 1, 1, 1, 1, 2, 3, 3]


@given(TEXTS, ENCODINGS, st.integers(-1, 12), st.integers(0, 12))
def test_offsets_are_those_of_an_independent_reading(
    text: str, encoding: PositionEncoding, line: int, character: int
) -> None:
    lines = LineIndex(text, encoding)
    other = lsp_text.Lines(text, encoding)
    for at in range(len(text) + 1):
        found = lines.position(at)
        assert {"line": found[0], "character": found[1]} == other.position(at)
    place = {"line": max(0, line), "character": character}
    try:
        expected = other.offset(place)
    except lsp_text.EditError:
        return
    found = LineIndex(text, encoding).offset(line, character)
    assert line < 0 or found == expected or text[found - 1 : found + 1] == "\r\n"


@given(TEXTS, TEXTS, ENCODINGS, st.data())
def test_what_is_known_of_lines_stays_true_after_a_change(
    text: str, new: str, encoding: PositionEncoding, data: st.DataObject
) -> None:
    lines = LineIndex(text, encoding)
    lines.position(data.draw(st.integers(0, len(text))))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    after = lines.spliced(start, end, new)
    fresh = LineIndex(after.text, encoding)
    size = len(after.text) + 1
    assert [after.position(at) for at in range(size)] == [fresh.position(at) for at in range(size)]


def test_typing_in_ten_megabytes_costs_no_search_for_lines() -> None:
    began = time.process_time()
    lines = LineIndex("some words on a line\n" * 500_000, "utf-16")
    assert lines.offset(250_000, 0) == 250_000 * 21
    searched = time.process_time()
    for count in range(50):
        at = lines.offset(250_000, count)
        lines = lines.spliced(at, at, "x")
    assert lines.position(lines.offset(250_000, 50)) == (250_000, 50)
    # Fifty searches would take fifty times as long as the first.
    assert time.process_time() - searched < 15 * (searched - began)


@given(TEXTS, ENCODINGS, st.lists(st.integers(0, 40)))
def test_places_that_come_in_order_are_found_without_keeping_lines(
    text: str, encoding: PositionEncoding, offsets: list[int]
) -> None:
    lines = LineIndex(text, encoding)
    places = sorted({min(at, len(text)) for at in offsets})
    places = [at for at in places if at == 0 or text[at - 1 : at + 1] != "\r\n"]
    assert list(positions(text, places, encoding)) == [lines.position(at) for at in places]
