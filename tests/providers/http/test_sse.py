"""The event stream's decoder gives the same events however the bytes were cut."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from agent_core.providers.http.stream import EventTooLarge, SseDecoder, SseEvent

STREAM = (
    ': a comment\n\ndata: {"a":"é😀"}\n\nevent: named\ndata:no space\n\n'
    "data: one\ndata: two\ndata\n\nid: 7\nretry: 3\n\n\n\ndata:  two spaces\n\nevent: empty\n\n"
    "data: last"
).encode()
EVENTS = [
    SseEvent(b"", '{"a":"é😀"}'.encode()),
    SseEvent(b"named", b"no space"),
    SseEvent(b"", b"one\ntwo\n"),
    SseEvent(b"", b" two spaces"),
    SseEvent(b"", b"last"),
]


def decoded(stream: bytes, cuts: list[int]) -> list[SseEvent]:
    decoder = SseDecoder()
    events = []
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    for start, end in pairwise(edges):
        events.extend(decoder.feed(stream[start:end]))
    return events + decoder.flush()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_every_line_end_gives_the_same_events(end: bytes, bom: bytes):
    stream = bom + STREAM.replace(b"\n", end)
    assert decoded(stream, []) == EVENTS
    assert decoded(stream, list(range(len(stream)))) == EVENTS


@given(
    cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=40),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    bom=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_every_cut_gives_the_same_events(cuts: list[int], end: bytes, bom: bytes):
    stream = bom + STREAM.replace(b"\n", end)
    assert decoded(stream, cuts) == EVENTS


@given(
    lines=st.lists(
        st.tuples(
            st.sampled_from(["data: x", "data:y", "data", ": c", "event: e", "", "junk", "data: "]),
            st.sampled_from(["\n", "\r\n", "\r"]),
        ),
        max_size=30,
    ),
    cuts=st.lists(st.integers(min_value=0, max_value=300), max_size=20),
)
def test_mixed_line_ends_are_read_as_the_standard_says(
    lines: list[tuple[str, str]], cuts: list[int]
):
    stream = "".join(text + end for text, end in lines)
    assert decoded(stream.encode(), cuts) == by_the_standard(stream)


def by_the_standard(stream: str) -> list[SseEvent]:
    """The standard's own procedure, line by line; only the end of the stream also ends an event."""
    events, name, data = [], b"", []
    lines = stream.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for line in [*lines, ""]:
        if not line:
            if data:
                events.append(SseEvent(name, b"\n".join(data)))
            name, data = b"", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value.encode())
        elif field == "event":
            name = value.encode()
    return events


def test_an_event_is_given_as_soon_as_its_blank_line_begins():
    decoder = SseDecoder()
    assert decoder.feed(b"data: 1\r\n\r") == [SseEvent(b"", b"1")]
    assert decoder.feed(b"\ndata: 2\r\n\r\n") == [SseEvent(b"", b"2")]


def test_a_stream_without_events_is_refused_when_it_grows_beyond_reason():
    decoder = SseDecoder(limit_bytes=1000)
    for _ in range(90):
        assert decoder.feed(b"data: xxxx\n") == []
    with pytest.raises(EventTooLarge, match="1000 bytes"):
        decoder.feed(b"data: xxxx\n")


def test_a_big_event_in_small_pieces_costs_linear_work():
    """Ten times the bytes of an unfinished event are kept as pieces, never joined before the end."""
    decoder = SseDecoder()
    for _ in range(200_000):
        assert decoder.feed(b"abcdefgh\n") == []
    (event,) = decoder.feed(b"data: end\n\n")
    assert event == SseEvent(b"", b"end")
