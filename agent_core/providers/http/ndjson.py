"""Lines of JSON out of bytes, however the bytes were cut."""

from agent_core.providers.http.sse import BOM, LIMIT_BYTES, EventTooLarge, SseEvent


class NdjsonDecoder:
    """Turns pieces of a stream into its lines, each an event without a name; the work is linear in the bytes."""

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._first = True

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Decode the next bytes and return the lines that they complete.

        Raises:
            EventTooLarge: A line is longer than the limit.
        """
        self._pieces.append(piece)
        if b"\n" not in piece:
            self._size += len(piece)
            if self._size > self._limit:
                message = f"a line of more than {self._limit} bytes"
                raise EventTooLarge(message)
            return []
        *lines, rest = b"".join(self._pieces).split(b"\n")
        self._pieces = [rest] if rest else []
        self._size = len(rest)
        return self._events(lines)

    def flush(self) -> list[SseEvent]:
        """Return what the end of the stream completes: a last line without its end."""
        rest = b"".join(self._pieces)
        self._pieces = []
        self._size = 0
        return self._events([rest])

    def _events(self, lines: list[bytes]) -> list[SseEvent]:
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(BOM)
        return [SseEvent(b"", line) for line in map(bytes.strip, lines) if line]
