"""Server-sent events out of bytes, however the bytes were cut."""

from typing import NamedTuple

BOM = b"\xef\xbb\xbf"
LIMIT_BYTES = 64 * 1024 * 1024
"""Largest size of one event, in bytes; a stream with a larger event is not an event stream."""


class SseEvent(NamedTuple):
    """One event; comments and events without data are dropped."""

    name: bytes
    """Empty when the stream gave none."""
    data: bytes


class BadFraming(ValueError):
    """The bytes are not what was promised; the text says how."""


class EventTooLarge(BadFraming):
    """An event grew beyond every reason."""


class SseDecoder:
    """Turns pieces of a stream into its events; the work is linear in the bytes.

    Line ends may be CR, LF or CRLF, also mixed, and every cut is allowed.
    """

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._after_newline = False
        self._after_cr = False
        self._first = True

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Decode the next bytes and return the events that they complete.

        Raises:
            EventTooLarge: An event is larger than the limit.
        """
        piece = self._with_newlines(piece)
        if not piece:
            return []
        ends_here = b"\n\n" in piece or (self._after_newline and piece.startswith(b"\n"))
        self._pieces.append(piece)
        self._after_newline = piece.endswith(b"\n")
        if not ends_here:
            self._size += len(piece)
            if self._size > self._limit:
                message = f"an event of more than {self._limit} bytes"
                raise EventTooLarge(message)
            return []
        *blocks, rest = b"".join(self._pieces).split(b"\n\n")
        self._pieces = [rest] if rest else []
        self._size = len(rest)
        return self._events(blocks)

    def flush(self) -> list[SseEvent]:
        """Return what the end of the stream completes: an event that lacks its blank line."""
        rest = b"".join(self._pieces)
        self._pieces = []
        self._size = 0
        return self._events([rest])

    def _with_newlines(self, piece: bytes) -> bytes:
        """Make every line end an LF; a CRLF may have been cut in the middle."""
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        if b"\r" not in piece:
            return piece
        self._after_cr = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, blocks: list[bytes]) -> list[SseEvent]:
        if self._first and blocks:
            self._first = False
            blocks[0] = blocks[0].removeprefix(BOM)
        events: list[SseEvent] = []
        for block in blocks:
            # What nearly every provider sends nearly always: one data line.
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append(SseEvent(b"", block[6:]))
                continue
            event = _parse(block)
            if event is not None:
                events.append(event)
        return events


def _parse(block: bytes) -> SseEvent | None:
    name = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    return SseEvent(name, b"\n".join(data)) if data else None
