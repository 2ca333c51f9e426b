"""Amazon's binary frames: found in any cut, and never believed when they are damaged."""

import json
import time
from binascii import crc32

import pytest

from agent_core.providers.http.aws_event_stream import EventStreamDecoder
from agent_core.providers.http.stream import BadFraming, SseEvent
from tests.providers.aws_frames import event, exception, frame

STREAM = (
    event("messageStart", role="assistant")
    + event("contentBlockDelta", delta={"text": "日本語"})
    + event("messageStop", stopReason="end_turn")
)
NAMES = [b"messageStart", b"contentBlockDelta", b"messageStop"]


def decoded(*pieces: bytes) -> list[SseEvent]:
    decoder = EventStreamDecoder()
    events = [found for piece in pieces for found in decoder.feed(piece)]
    return [*events, *decoder.flush()]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 11, 12, 13, 64, len(STREAM)])
def test_frames_are_found_however_they_were_cut(size: int):
    events = decoded(*(STREAM[at : at + size] for at in range(0, len(STREAM), size)))
    assert [found.name for found in events] == NAMES
    assert json.loads(events[1].data)["delta"] == {"text": "日本語"}


def test_every_single_cut_gives_the_same():
    whole = decoded(STREAM)
    for cut in range(1, len(STREAM)):
        assert decoded(STREAM[:cut], STREAM[cut:]) == whole


def test_every_wrong_byte_is_noticed():
    for at in range(len(STREAM)):
        damaged = STREAM[:at] + bytes([STREAM[at] ^ 0x01]) + STREAM[at + 1 :]
        with pytest.raises(BadFraming):
            decoded(damaged)


def test_a_stream_that_ends_inside_a_frame_is_damaged():
    ends = {0}
    for name in range(1, len(NAMES) + 1):
        ends.add(sum(len(part) for part in parts()[:name]))
    for cut in range(len(STREAM)):
        if cut in ends:
            assert len(decoded(STREAM[:cut])) <= len(NAMES)
            continue
        with pytest.raises(BadFraming, match="not whole"):
            decoded(STREAM[:cut])


def parts() -> list[bytes]:
    rest, found = STREAM, []
    while rest:
        size = int.from_bytes(rest[:4], "big")
        found.append(rest[:size])
        rest = rest[size:]
    return found


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (exception("throttlingException", "slow"), ("throttlingException", "slow")),
        (
            frame(b"", error_code="InternalError", error_message="oh", message_type="error"),
            ("InternalError", "oh"),
        ),
        (
            frame(b"no JSON", exception_type="modelTimeoutException", message_type="exception"),
            ("modelTimeoutException", "no JSON"),
        ),
        (
            frame({"Message": "big M"}, exception_type="x", message_type="exception"),
            ("x", "big M"),
        ),
    ],
    ids=["exception", "error", "plain text", "capital"],
)
def test_a_frame_that_tells_of_an_error_says_which(sent: bytes, told: tuple[str, str]):
    (found,) = decoded(sent)
    assert found.name == b"exception"
    body = json.loads(found.data)
    assert (body["type"], body["message"]) == told


def test_headers_of_other_kinds_are_passed_over():
    plain = event("messageStop", stopReason="end_turn")
    size = int.from_bytes(plain[4:8], "big")
    headers, payload = plain[12 : 12 + size], plain[12 + size : -4]
    others = b"".join(
        bytes([1]) + b"x" + bytes([kind]) + bytes(length)
        for kind, length in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)]
    )
    others += b"\x01y\x06\x00\x02ab"
    (found,) = decoded(raw_frame(others + headers, payload))
    assert (found.name, found.data) == (b"messageStop", payload)


@pytest.mark.parametrize(
    "headers", [b"\x01x\x63", b"\x01x", b"\x05ab"], ids=["kind", "end", "name"]
)
def test_headers_that_cannot_be_read_are_damage(headers: bytes):
    with pytest.raises(BadFraming, match="headers"):
        decoded(raw_frame(headers, b"{}"))


def raw_frame(headers: bytes, payload: bytes) -> bytes:
    size = 16 + len(headers) + len(payload)
    prelude = size.to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    head = prelude + crc32(prelude).to_bytes(4, "big") + headers + payload
    return head + crc32(head).to_bytes(4, "big")


def test_a_frame_beyond_every_reason_is_refused_before_it_has_come():
    big = frame({"text": "x" * 200}, event_type="e", message_type="event")
    with pytest.raises(BadFraming, match="bytes of headers"):
        EventStreamDecoder(limit_bytes=100).feed(big[:12])


def test_one_big_frame_in_single_bytes_costs_no_more_than_its_bytes():
    def took(size: int) -> float:
        sent = frame({"text": "x" * size}, event_type="e", message_type="event")
        decoder = EventStreamDecoder()
        started = time.perf_counter()
        events = [found for at in range(len(sent)) for found in decoder.feed(sent[at : at + 1])]
        assert len(events) == 1
        return time.perf_counter() - started

    small = min(took(20_000) for _ in range(3))
    big = min(took(200_000) for _ in range(3))
    assert big < small * 40
