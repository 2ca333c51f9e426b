"""Reads ripgrep's JSON output as it comes, in bounded memory however long a line is: pure."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from agent_core.kernel import JsonValue
from agent_core.kernel.json import as_object, decode
from agent_core.kernel.values import Value
from agent_core.tools.builtin.grep.matches import GrepLine

LONG_BYTES = 65_536
"""Of a longer line only the head is kept, and its number."""
HEAD_BYTES = 32_768
TAIL_BYTES = 64
SAID_BYTES = 4_096
LINE_NUMBER = re.compile(rb'\},"line_number":(\d+),')
"""Quotes inside a text have a backslash before them, so this can be nothing else."""
KIND = re.compile(rb'\{"type":"(match|context|begin|end)"')
TEXT = re.compile(rb'"lines":\{"(text|bytes)":"')
PATH = re.compile(
    rb'\{"type":"\w+","data":\{"path":(\{"(?:text|bytes)":"[^"\\]*(?:\\.[^"\\]*)*"\})'
)
STRING = re.compile(rb'([^"\\]*(?:\\.[^"\\]*)*)"')
ESCAPE_BYTES = 12
"""A character takes no more in JSON."""


class RipgrepEvent(Value, frozen=True):
    """Something ripgrep reports."""

    kind: Literal["begin", "line", "end", "binary"]
    """`binary`: an end, and the file is no text after all."""
    path: str
    line: GrepLine | None = None


class RipgrepEventReader:
    """Makes events of chunks of output."""

    def __init__(self) -> None:
        """Begin before the first byte."""
        self._rest = b""
        self._is_long = False
        """The rest is the head of a line that is too long to keep."""
        self._tail = b""
        self._number: int | None = None
        self._said = bytearray()

    @property
    def said(self) -> str:
        """Text in ripgrep's output that is not an event: an error message."""
        return self._said.decode("utf-8", "replace")

    def feed(self, data: bytes) -> Iterator[RipgrepEvent]:
        """Parse a chunk, and yield the events that it completes."""
        if self._is_long:
            end = data.find(b"\n")
            self._skip(data if end < 0 else data[: end + 1])
            if end < 0:
                return
            data = data[end + 1 :]
            event = _long_event(self._rest, self._number)
            self._rest, self._is_long = b"", False
            if event:
                yield event
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            event = self._event(line)
            if event:
                yield event
        if len(self._rest) > LONG_BYTES:
            rest, self._rest = self._rest, self._rest[:HEAD_BYTES]
            self._is_long, self._tail, self._number = True, b"", None
            self._skip(rest)

    def close(self) -> None:
        """Report that nothing more comes."""
        if self._rest and not self._is_long:
            _ = self._event(self._rest)

    def _skip(self, data: bytes) -> None:
        window = self._tail + data
        found = LINE_NUMBER.search(window)
        if found and self._number is None:
            self._number = int(found[1])
        self._tail = window[-TAIL_BYTES:]

    def _event(self, line: bytes) -> RipgrepEvent | None:
        kind = KIND.match(line)
        if kind is None:
            if not line.startswith(b'{"') and len(self._said) < SAID_BYTES:
                self._said += line[:SAID_BYTES] + b"\n"
            return None
        if len(line) > LONG_BYTES:
            number = LINE_NUMBER.search(line)
            return _long_event(line[:HEAD_BYTES], int(number[1]) if number else None)
        data = as_object(as_object(decode(line)).get("data"))
        path = _text(data.get("path"))
        if kind[1] == b"begin":
            return RipgrepEvent("begin", path)
        if kind[1] == b"end":
            return RipgrepEvent("end" if data.get("binary_offset") is None else "binary", path)
        number_said = data.get("line_number")
        return _line_event(
            kind[1],
            path,
            _text(data.get("lines")),
            number_said if isinstance(number_said, int) else 0,
        )


def _line_event(
    kind: bytes, path: str, text: str, number: int, *, is_cut: bool = False
) -> RipgrepEvent:
    text = text.removesuffix("\n").removesuffix("\r")
    line = GrepLine("match" if kind == b"match" else "context", number, text, is_cut)
    return RipgrepEvent("line", path, line)


def _long_event(head: bytes, number: int | None) -> RipgrepEvent | None:
    """Read the beginning of a line that is too long."""
    kind, path, text = KIND.match(head), PATH.match(head), TEXT.search(head)
    if kind is None or path is None or text is None or number is None:
        return None
    begun = head[text.end() :]
    whole = STRING.match(begun)
    if whole:
        begun = whole[1]  # what is long is the list of places in it
    shown = _begun_base64(begun) if text[1] == b"bytes" else _begun_string(begun)
    where = _text(as_object(decode(path[1])))
    return _line_event(kind[1], where, shown, number, is_cut=whole is None)


def _begun_string(begun: bytes) -> str:
    """Read what is there of a JSON string."""
    whole = begun.decode("utf-8", "ignore")
    for cut in range(ESCAPE_BYTES):
        try:
            value = decode(f'"{whole[: len(whole) - cut]}"')
        except ValueError:
            continue
        return value if isinstance(value, str) else ""
    return ""


def _begun_base64(begun: bytes) -> str:
    return base64.b64decode(begun[: len(begun) // 4 * 4]).decode("utf-8", "replace")


def _text(value: JsonValue) -> str:
    """Read what ripgrep writes as text when it is UTF-8, else as bytes."""
    if not isinstance(value, Mapping):
        return ""
    text, data = value.get("text"), value.get("bytes")
    if isinstance(text, str):
        return text
    try:
        return base64.b64decode(data).decode("utf-8", "replace") if isinstance(data, str) else ""
    except binascii.Error:
        return ""
