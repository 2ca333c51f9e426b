"""Frames are written and read as protobuf does it, and hostile bytes are refused with a sentence."""

import pytest
from hypothesis import given, strategies as st

from tiller_server.channels.lark.connection.frames import (
    DATA,
    FRAME_BYTES,
    Frame,
    FrameInvalid,
    ack_frame,
    decode_frame,
    encode_frame,
    ping_frame,
)

U64 = st.integers(0, 2**64 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
FRAMES = st.builds(
    Frame,
    sequence=U64,
    log_id=U64,
    service=I32,
    method=I32,
    headers=st.lists(st.tuples(TEXT, TEXT), max_size=6).map(tuple),
    payload_encoding=TEXT,
    payload_type=TEXT,
    payload=st.binary(max_size=400),
    log_id_new=TEXT,
)


@given(FRAMES)
def test_a_frame_that_is_written_is_read_as_it_was(frame: Frame) -> None:
    assert decode_frame(encode_frame(frame)) == frame


def test_the_bytes_of_a_ping_are_those_of_protobuf() -> None:
    # Field 3 is 300 (ac 02); required fields are written also when they are 0.
    assert encode_frame(ping_frame(300)).hex(" ") == (
        "08 00 10 00 18 ac 02 20 00 2a 0c 0a 04 74 79 70 65 12 04 70 69 6e 67"
    )


@given(FRAMES)
def test_an_acknowledgement_is_the_same_frame_with_another_payload(frame: Frame) -> None:
    ack = ack_frame(frame, payload=b"{}", duration_ms=12)
    assert (ack.sequence, ack.service, ack.payload) == (frame.sequence, frame.service, b"{}")
    assert ack.headers == (*frame.headers, ("biz_rt", "12"))


def test_unknown_fields_of_every_type_are_ignored() -> None:
    extra = b"\x78\x05" + b"\x79" + b"\0" * 8 + b"\x7a\x02hi" + b"\x7d" + b"\0" * 4
    frame = Frame(method=DATA, payload=b"x")
    assert decode_frame(extra + encode_frame(frame)) == frame


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "lacks the required field 1", id="empty"),
        pytest.param(b"\x08", "ends inside a number", id="cut-number"),
        pytest.param(b"\xff" * 11, "more than 10 bytes", id="long-number"),
        pytest.param(b"\x42\x7fabc", "ends 124 bytes after it", id="cut-payload"),
        pytest.param(b"\x42\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "bytes after it", id="huge"),
        pytest.param(b"\x03\x04", "number 0", id="field-0"),
        pytest.param(b"\x0b", "unknown type 3", id="group"),
        pytest.param(b"\x0a\x01a", "wrong type", id="text-for-number"),
        pytest.param(b"\x40\x01", "wrong type", id="number-for-text"),
        pytest.param(b"\x2a\x00" * 300, "more than 256 headers", id="headers"),
        pytest.param(b"\0" * (FRAME_BYTES + 1), "exceeds the limit", id="size"),
    ],
)
def test_bytes_that_are_no_frame_are_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(FrameInvalid, match=reason):
        decode_frame(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_refused(data: bytes) -> None:
    try:
        frame = decode_frame(data)
    except FrameInvalid:
        return
    assert decode_frame(encode_frame(frame)) == frame
