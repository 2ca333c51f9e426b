"""Lines of JSON: only LF ends one, and a line has a limit."""

from typing import Final

LINE_BYTES: Final = 32 * 1024 * 1024
"""Limit of one message, as of a frame: pictures in a prompt are base64."""


class LineTooLong(Exception):
    """A line is longer than the limit; it was skipped."""


class JsonLines:
    """Buffer between bytes and lines. U+2028 and U+2029 are data; a CR before the LF is not."""

    def __init__(self, limit_bytes: int = LINE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._rest = bytearray()
        self._is_skipping = False
        self._looked = 0
        """Bytes of the rest without an LF, which need not be searched again."""

    def feed(self, data: bytes) -> None:
        """Add bytes that have arrived."""
        self._rest += data

    def take(self) -> bytes | None:
        """Return the next line without its end; None: it is not complete yet.

        Raises:
            LineTooLong: It is above the limit; once per line, and the line after it can be taken.
        """
        end = self._rest.find(b"\n", self._looked)
        if end < 0:
            self._looked = len(self._rest)
            if self._looked > self._limit_bytes and not self._is_skipping:
                self._is_skipping = True
                self._drop(self._looked)
                raise LineTooLong
            if self._is_skipping:
                self._drop(self._looked)
            return None
        line = bytes(self._rest[:end])
        self._drop(end + 1)
        if self._is_skipping:
            self._is_skipping = False
            return self.take()
        if len(line) > self._limit_bytes:
            raise LineTooLong
        return line.removesuffix(b"\r")

    def last(self) -> bytes | None:
        """Return what the input ended with, where no LF followed; None: nothing."""
        line, self._rest = bytes(self._rest), bytearray()
        return None if self._is_skipping or not line else line.removesuffix(b"\r")

    def _drop(self, count: int) -> None:
        del self._rest[:count]
        self._looked = 0
