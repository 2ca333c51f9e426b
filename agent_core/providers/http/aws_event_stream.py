"""Amazon's binary event stream out of bytes, however the bytes were cut."""

from binascii import crc32
from collections.abc import Mapping

from agent_core.kernel import JsonObject, json
from agent_core.providers.http.stream import LIMIT_BYTES, BadFraming, SseEvent

EXCEPTION = b"exception"
"""The name of the event that stands for a frame which tells of an error."""

NUMBER_BYTES = 4
PRELUDE_BYTES = 2 * NUMBER_BYTES
"""How long the frame is and how long its headers are."""
HEAD_BYTES = PRELUDE_BYTES + NUMBER_BYTES
"""The prelude and its checksum."""
LEAST_BYTES = HEAD_BYTES + NUMBER_BYTES
TEXTS = (6, 7)
"""The kinds of header value that have a length of their own: bytes and text."""
SIZES: Mapping[int, int] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""How many bytes the other kinds take."""


class EventStreamDecoder:
    """Turns pieces of a stream into its events; the work is linear in the bytes.

    An event has the name that its frame has. A frame that tells of an error becomes an event named
    `exception`, with the error's `type` and `message` as its data.
    """

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._wanted = HEAD_BYTES
        """So many bytes must be there before there is anything to do."""

    @property
    def is_inside(self) -> bool:
        """Return whether a frame has begun and is not whole."""
        return self._size > 0

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Decode the next bytes and return the events that they complete.

        Raises:
            BadFraming: A checksum is wrong, or a frame is larger than the limit.
        """
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size < self._wanted:
            return []
        whole = b"".join(self._pieces)
        events: list[SseEvent] = []
        start = 0
        while True:
            size = self._frame_bytes(whole, start)
            if len(whole) - start < size:
                break
            events.append(_event(whole[start : start + size]))
            start += size
        rest = whole[start:]
        self._pieces = [rest] if rest else []
        self._size = len(rest)
        self._wanted = size
        return events

    def flush(self) -> list[SseEvent]:
        """Return what the end of the stream completes: never anything, for a frame says how long it is.

        Raises:
            BadFraming: The stream ended inside a frame.
        """
        if self._size:
            message = "a frame that is not whole"
            raise BadFraming(message)
        return []

    def _frame_bytes(self, whole: bytes, start: int) -> int:
        """Return how long the frame at `start` is, or how much must come to say so."""
        if len(whole) - start < HEAD_BYTES:
            return HEAD_BYTES
        size, headers = _number(whole, start), _number(whole, start + NUMBER_BYTES)
        checked = whole[start : start + PRELUDE_BYTES]
        if crc32(checked) != _number(whole, start + PRELUDE_BYTES):
            message = "a frame whose beginning is damaged"
            raise BadFraming(message)
        if not LEAST_BYTES + headers <= size <= self._limit:
            message = f"a frame of {size} bytes with {headers} bytes of headers"
            raise BadFraming(message)
        return size


def _number(raw: bytes, at: int) -> int:
    return int.from_bytes(raw[at : at + NUMBER_BYTES], "big")


def _event(frame: bytes) -> SseEvent:
    end = len(frame) - NUMBER_BYTES
    if crc32(frame[:end]) != _number(frame, end):
        message = "a frame that is damaged"
        raise BadFraming(message)
    length = _number(frame, NUMBER_BYTES)
    headers = _headers(frame[HEAD_BYTES : HEAD_BYTES + length])
    payload = frame[HEAD_BYTES + length : end]
    kind = headers.get(b":message-type", b"event")
    if kind == b"event":
        return SseEvent(headers.get(b":event-type", b""), payload)
    return SseEvent(EXCEPTION, _error_body(headers, payload))


def _headers(raw: bytes) -> dict[bytes, bytes]:
    """Read the headers that are text; the others say nothing that we need."""
    headers: dict[bytes, bytes] = {}
    at = 0
    try:
        while at < len(raw):
            name = raw[at + 1 : at + 1 + raw[at]]
            at += 1 + raw[at]
            kind = raw[at]
            at += 1
            if kind in TEXTS:
                size = int.from_bytes(raw[at : at + 2], "big")
                headers[name] = raw[at + 2 : at + 2 + size]
                at += 2 + size
            else:
                at += SIZES[kind]
    except (IndexError, KeyError):
        message = "a frame with headers that cannot be read"
        raise BadFraming(message) from None
    return headers


def _error_body(headers: Mapping[bytes, bytes], payload: bytes) -> bytes:
    """Bring both ways of telling an error into one form."""
    kind = headers.get(b":exception-type") or headers.get(b":error-code", b"")
    text = headers.get(b":error-message", b"").decode("utf-8", "replace")
    body: JsonObject = {}
    try:
        body = json.as_object(json.decode(payload))
    except ValueError:
        text = text or payload.decode("utf-8", "replace")
    found = body.get("message") or body.get("Message") or text
    return json.encode({**body, "type": kind.decode("utf-8", "replace"), "message": found})
