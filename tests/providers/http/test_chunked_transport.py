"""Joined chunks are, for h11, the same body at the same time as the chunks that came; what is broken stays broken."""

from itertools import pairwise

import h11
import pytest
from hypothesis import example, given, strategies as st

from agent_core.providers.http.httpx_client import ChunkJoiner

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: Chunked\r\n\r\n"
REQUEST = h11.Request(method="POST", target="/", headers=[("host", "h"), ("content-length", "0")])
BROKEN = "broken"


class Reader:
    """A client that reads one response with h11."""

    def __init__(self) -> None:
        self._client = h11.Connection(h11.CLIENT)
        self._client.send(REQUEST)
        self._client.send(h11.EndOfMessage())
        self.seen = b""
        self.end = ""

    def feed(self, piece: bytes) -> None:
        if self.end:
            return
        self._client.receive_data(piece)
        while True:
            try:
                event = self._client.next_event()
            except h11.RemoteProtocolError:
                self.end = BROKEN
                return
            match event:
                case h11.Data(data=data):
                    self.seen += bytes(data)
                case h11.EndOfMessage() | h11.PAUSED:
                    self.end = "whole"
                    return
                case h11.NEED_DATA:
                    return
                case _:
                    self.seen += repr(event).encode()


def read(raw: bytes, cuts: list[int]) -> None:
    """Read a response with and without the joiner, and compare after every piece."""
    plain, rewritten, joiner = Reader(), Reader(), ChunkJoiner()
    edges = [0, *sorted(cut % (len(raw) + 1) for cut in cuts), len(raw)]
    for start, end in pairwise(edges):
        if start == end:
            continue
        plain.feed(raw[start:end])
        if joined := joiner.feed(raw[start:end]):
            rewritten.feed(joined)
        assert rewritten.seen == plain.seen
    if held := joiner.flush():
        rewritten.feed(held)
    plain.feed(b"")
    rewritten.feed(b"")
    assert (rewritten.seen, rewritten.end) == (plain.seen, plain.end)


def chunked(*bodies: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    return HEAD + b"".join(b"%X\r\n%b\r\n" % (len(body), body) for body in bodies) + last


BODIES = st.lists(st.binary(min_size=1, max_size=20), max_size=12)
CUTS = st.lists(st.integers(min_value=0, max_value=10_000), max_size=8)


@given(bodies=BODIES, cuts=CUTS)
@example(bodies=[b"one", b"two"], cuts=list(range(200)))
def test_a_body_is_read_the_same_however_it_was_cut(bodies: list[bytes], cuts: list[int]):
    read(chunked(*bodies), cuts)


ODD = {
    "an informational response first": b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    + chunked(b"ab"),
    "two informational responses first": b"HTTP/1.1 100 Continue\r\n\r\n" * 2 + chunked(b"a", b"b"),
    "a trailer": chunked(b"ab", b"c", last=b"0\r\nx-sum: 1\r\n\r\n"),
    "a chunk extension": HEAD + b"2\r\nab\r\n1;name=value\r\nc\r\n0\r\n\r\n",
    "a blank behind the size": HEAD + b"2 \t\r\nab\r\n0\r\n\r\n",
    "zeros before the size": HEAD + b"0002\r\nab\r\n00\r\n\r\n",
    "no end": chunked(b"ab", b"cd", last=b""),
    "an end inside a chunk": chunked(b"ab", last=b"5\r\nab"),
    "an end inside a size": chunked(b"ab", last=b"5"),
    "an end before a line end": chunked(b"ab", last=b"2\r\nab\r"),
    "a size that is none": chunked(b"ab", last=b"zz\r\nab\r\n0\r\n\r\n"),
    "a negative size": chunked(b"ab", last=b"-2\r\nab\r\n0\r\n\r\n"),
    "an empty size": chunked(b"ab", last=b"\r\nab\r\n0\r\n\r\n"),
    "a size with LF alone": chunked(b"ab", last=b"2\nab\r\n0\r\n\r\n"),
    "a chunk that is longer than its size": chunked(b"ab", last=b"2\r\nabc\r\n0\r\n\r\n"),
    "a longer chunk that goes on like one": chunked(b"ab", last=b"1\r\nab1\r\nc\r\n0\r\n\r\n"),
    "a very long size line": chunked(b"ab", last=b"0" * 500 + b"2\r\nab\r\n0\r\n\r\n"),
    "a length": b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n2\r\nab\r\n0\r\n",
    "no length": b"HTTP/1.0 200 OK\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "another coding": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "no HTTP at all": b"SSH-2.0-server\r\n\r\n2\r\nab\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_left_to_h11(name: str):
    raw = ODD[name]
    read(raw, [])
    read(raw, list(range(len(raw))))
    for cut in range(len(raw)):
        read(raw, [cut])


def test_chunks_of_one_piece_are_one_chunk():
    joiner = ChunkJoiner()
    body = [b"data: %d\n\n" % number for number in range(500)]
    joined = joiner.feed(chunked(*body))
    whole = b"".join(body)
    assert joined == HEAD + b"%x\r\n%b\r\n0\r\n\r\n" % (len(whole), whole)


def test_the_next_request_begins_with_a_head_again():
    joiner = ChunkJoiner()
    answer = chunked(b"a", b"b")
    first = joiner.feed(answer)
    joiner.begin()
    assert joiner.feed(answer) == first == HEAD + b"2\r\nab\r\n0\r\n\r\n"
