"""Frames: what is tolerated, what ends the stream, and that pieces do not matter."""

import itertools
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from tiller_server.lsp.transport.framing import (
    MAX_FRAME_BYTES,
    MAX_HEADER_BYTES,
    MAX_HEADER_LINES,
    FrameError,
    FrameReader,
    frame,
)


def bodies(*pieces: bytes) -> list[bytes]:
    reader = FrameReader()
    found: list[bytes] = []
    for piece in pieces:
        reader.feed(piece)
        while (body := reader.take()) is not None:
            found.append(body)
    return found


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 2\r\n\r\n",
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH:2\r\n\r\n",
        b"Content-Length :   2  \r\n\r\n",
        b"Content-Length: 2\n\n",
        b"Content-Length: 2\r\n\n",
        b"Content-Length: 0002\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nContent-Type: x\r\n\r\n",
        b"Content-Length: 2\r\nX-Other: y\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n",
        b"\r\n\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\n" + b"X-A: 1\r\n" * (MAX_HEADER_LINES - 1) + b"\r\n",
        b"Content-Length: 0000000002\r\n\r\n",
    ],
)
def test_any_spelling_of_a_header_is_read(header: bytes) -> None:
    assert bodies(header + b"{}" + header + b"[]") == [b"{}", b"[]"]


@pytest.mark.parametrize(
    "stream",
    [
        b"Content-Length: -1\r\n\r\n{}",
        b"Content-Length: +5\r\n\r\n{}",
        b"Content-Length: 1_0\r\n\r\n{}",
        b"Content-Length: 0x10\r\n\r\n{}",
        b"Content-Length: NaN\r\n\r\n{}",
        b"Content-Length:\r\n\r\n{}",
        "Content-Length: ٢\r\n\r\n{}".encode(),
        b"Content-Length: %d\r\n\r\n" % (MAX_FRAME_BYTES + 1),
        b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"Content-Length: 2\r\n folded\r\n\r\n{}",
        b"X-Only: 1\r\n\r\n{}",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST http://localhost:1/ HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        b"\x16\x03\x01\x00\n",
        b"\x00" * (MAX_HEADER_BYTES + 1),
        b"X-A: 1\r\n" * 2000,
        b"Content-Length: 2\r\n" + b"X-A: 1\r\n" * MAX_HEADER_LINES,
        b"X-A: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: 00000000002\r\n\r\n{}",
        b"Content-Length: 2\r\n" + b"X-A: " + b"a" * MAX_HEADER_BYTES,
        b"X-A: " + b"a" * (MAX_HEADER_BYTES + 1),
    ],
)
def test_a_header_that_hides_where_the_next_message_begins_is_an_error(stream: bytes) -> None:
    with pytest.raises(FrameError):
        bodies(stream)


def test_whole_messages_before_a_bad_header_are_delivered() -> None:
    reader = FrameReader()
    reader.feed(frame(b"{}") + b"nonsense\r\n")
    assert reader.take() == b"{}"
    with pytest.raises(FrameError):
        reader.take()


def test_a_claimed_length_allocates_nothing() -> None:
    reader = FrameReader()
    reader.feed(b"Content-Length: %d\r\n\r\n{" % MAX_FRAME_BYTES)
    assert reader.take() is None
    assert len(reader._buffer) < 100


def test_the_largest_message_is_delivered_whole() -> None:
    body = bytes(range(256)) * (MAX_FRAME_BYTES // 256)
    stream = frame(body)
    pieces = [stream[at : at + 65536] for at in range(0, len(stream), 65536)]
    assert bodies(*pieces) == [body]


def test_the_reader_knows_whether_a_message_is_cut_off() -> None:
    stream = b"\r\n" + frame(b"{}")
    for cut in range(len(stream) + 1):
        reader = FrameReader()
        reader.feed(stream[:cut])
        whole = reader.take() is not None
        assert reader.is_between_frames == (whole or cut in {0, 2}), cut


@given(
    st.lists(st.binary(max_size=200), max_size=8),
    st.lists(st.integers(min_value=1, max_value=50), max_size=40),
)
def test_pieces_do_not_matter(sent: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(frame(body) for body in sent)
    cuts = [0, *itertools.accumulate(sizes)]
    pieces = [stream[a:b] for a, b in itertools.pairwise(cuts)] + [stream[cuts[-1] :]]
    assert bodies(*pieces) == sent


@given(st.binary(max_size=300))
def test_no_bytes_do_anything_but_frames_or_frame_errors(noise: bytes) -> None:
    with suppress(FrameError):
        assert all(body in noise for body in bodies(noise))
