"""Frames of the base protocol: bytes in, message bodies out, and back."""

# Nothing is imported here, not even `re` and `typing`: what an editor spawns cuts frames, and it waits for that.
MAX_FRAME_BYTES = 32 * 1024 * 1024
MAX_HEADER_BYTES = 4 * 1024
MAX_HEADER_LINES = 16

# A field name as RFC 7230 has it: a request line of HTTP has a blank before its colon and fails.
_FIELD_CHARS = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FIRST_FIELDS = (b"content-length", b"content-type")
"""First fields of a header. Anything else is another protocol: a request that a web page can send begins otherwise."""
# Ten digits are far above the limit, and far below where int() gets slow or refuses.
_MAX_LENGTH_DIGITS = 10
_SHOWN_BYTES = 40


class FrameError(Exception):
    """The stream cannot be read any further: where the next message begins is unknown."""


def frame(body: bytes) -> bytes:
    """Return a message body with its header in front."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameReader:
    """Cuts a byte stream into message bodies, whatever the pieces it arrives in.

    Field names in any case, blanks around the colon, LF for CRLF, unknown fields and blank
    lines between messages are accepted; the first field must be one of LSP's own. Input that
    leaves the place of the next message unknown is a `FrameError`, after which the reader must
    not be used. Memory grows with the bytes received, never with the length that was claimed.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        self._header_bytes = 0
        self._header_lines = 0
        self._length: int | None = None
        self._body_bytes: int | None = None

    @property
    def is_between_frames(self) -> bool:
        """Whether the bytes so far end with a whole message."""
        in_header = self._header_bytes > 0 or self._body_bytes is not None
        return not in_header and self._at == len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Add what came from the stream."""
        # Dropping the consumed part once per piece, not per message, keeps small messages linear.
        del self._buffer[: self._at]
        self._at = 0
        self._buffer += data

    def take(self) -> bytes | None:
        """Return the next whole body, or None until more has been fed.

        Raises:
            FrameError: The header is not one, or claims a length that is not allowed.
        """
        while self._body_bytes is None:
            line = self._take_line()
            if line is None:
                return None
            self._read_header_line(line)
        end = self._at + self._body_bytes
        if len(self._buffer) < end:
            return None
        body = bytes(memoryview(self._buffer)[self._at : end])
        self._at = end
        self._body_bytes = None
        return body

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\n", self._at)
        length = (len(self._buffer) if end < 0 else end + 1) - self._at
        if self._header_bytes + length > MAX_HEADER_BYTES:
            why = f"a header is longer than {MAX_HEADER_BYTES} bytes"
            raise FrameError(why)
        if end < 0:
            return None
        line = bytes(self._buffer[self._at : end]).removesuffix(b"\r")
        self._at = end + 1
        if line or self._header_bytes:
            self._header_bytes += length
        return line

    def _read_header_line(self, line: bytes) -> None:
        if line:
            self._read_field(line)
            return
        if self._header_bytes == 0:
            return  # A blank line between messages belongs to no header.
        if self._length is None:
            raise FrameError("a header ends without a Content-Length")
        self._body_bytes, self._length = self._length, None
        self._header_bytes = self._header_lines = 0

    def _read_field(self, line: bytes) -> None:
        name, colon, value = line.partition(b":")
        name = name.rstrip(b" \t")
        if not colon or not name or name.translate(None, _FIELD_CHARS):
            why = f"a header line is no field: {line[:_SHOWN_BYTES]!r}"
            raise FrameError(why)
        self._header_lines += 1
        if self._header_lines > MAX_HEADER_LINES:
            why = f"a header has more than {MAX_HEADER_LINES} lines"
            raise FrameError(why)
        if self._header_lines == 1 and name.lower() not in _FIRST_FIELDS:
            why = f"a header begins with a field that LSP does not know: {line[:_SHOWN_BYTES]!r}"
            raise FrameError(why)
        if name.lower() != b"content-length":
            return
        length = _parse_length(value.strip(b" \t"))
        if self._length not in {None, length}:
            why = f"a header claims two lengths, {self._length} and {length}"
            raise FrameError(why)
        self._length = length


def _parse_length(value: bytes) -> int:
    if not value.isdigit() or len(value) > _MAX_LENGTH_DIGITS:
        why = f"a Content-Length is no usable number: {value[:_SHOWN_BYTES]!r}"
        raise FrameError(why)
    length = int(value)
    if length > MAX_FRAME_BYTES:
        why = f"a message of {length} bytes is above the limit of {MAX_FRAME_BYTES}"
        raise FrameError(why)
    return length


class LineCutter:
    """Cuts a byte stream into lines, for protocols with a message per line; blank lines are left out.

    Of a line of more than `MAX_FRAME_BYTES` only its beginning is returned, which is too long as well.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._lines: list[bytes] = []
        self._is_skipping = False

    def feed(self, data: bytes) -> None:
        """Add what came from the stream."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._buffer += end
            self._finish()
            self._is_skipping = False
        self._buffer += rest
        if self._is_skipping:
            self._buffer.clear()
        elif len(self._buffer) > MAX_FRAME_BYTES:
            self._finish()
            self._is_skipping = True

    def take(self) -> bytes | None:
        """Return the next whole line without its end, or None until more has been fed."""
        return self._lines.pop(0) if self._lines else None

    def _finish(self) -> None:
        line = bytes(self._buffer)
        self._buffer.clear()
        if line.strip() and not self._is_skipping:
            self._lines.append(line)
