"""The decoder of JSON lines gives the same lines however the bytes were cut."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from agent_core.providers.http.stream import EventTooLarge, NdjsonDecoder, SseEvent

STREAM = '{"a":"é😀"}\n\r\n  {"b":"\\n"} \r\n\n[1]\n{"last":true}'.encode()
LINES = ['{"a":"é😀"}', '{"b":"\\n"}', "[1]", '{"last":true}']
EVENTS = [SseEvent(b"", line.encode()) for line in LINES]


def decoded(stream: bytes, cuts: list[int]) -> list[SseEvent]:
    decoder = NdjsonDecoder()
    events = []
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    for start, end in pairwise(edges):
        events.extend(decoder.feed(stream[start:end]))
    return events + decoder.flush()


@given(
    cuts=st.lists(st.integers(min_value=0, max_value=100), max_size=40),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    end=st.sampled_from([b"", b"\n"]),
)
def test_every_cut_gives_the_same_lines(cuts: list[int], bom: bytes, end: bytes):
    stream = bom + STREAM + end
    assert decoded(stream, cuts) == decoded(stream, list(range(len(stream)))) == EVENTS


def test_nothing_is_no_line():
    decoder = NdjsonDecoder()
    assert decoder.feed(b"\n \r\n") == []
    assert decoder.flush() == []


def test_a_line_beyond_the_limit_is_refused_and_many_short_ones_are_not():
    decoder = NdjsonDecoder(limit_bytes=10)
    assert len(decoder.feed(b"{}\n" * 100)) == 100
    for _ in range(10):
        assert decoder.feed(b"x") == []
    with pytest.raises(EventTooLarge, match="more than 10 bytes"):
        decoder.feed(b"x")
