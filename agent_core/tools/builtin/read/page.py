"""Cuts the page that `read` shows out of a text, and says how to go on: pure."""

from collections.abc import Mapping

from msgspec.structs import asdict, replace

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.text import (
    DEFAULT_MAX_BYTES,
    Truncation,
    byte_count,
    count_lines,
    format_size,
    truncate_head,
)
from agent_core.kernel.values import Value
from agent_core.tools.port import ToolResult, text_result

HEAD_BYTES = DEFAULT_MAX_BYTES + 8
"""Enough of a text to cut its head as all of it would be cut: a whole character more than is shown."""


class RequestedLines(Value, frozen=True, kw_only=True):
    """Which lines were asked for."""

    first: int
    """From 1."""
    count: int | None
    """None: up to the end."""

    def last_of(self, line_count: int) -> int:
        """Return the number of the last line asked for in a text of so many lines."""
        return line_count if self.count is None else min(self.first + self.count - 1, line_count)


class ReadPage(Value, frozen=True, kw_only=True):
    """The lines that were asked for, as far as they fit, and where they stand in the text."""

    shown: Truncation
    first: int
    """The number of the first line, from 1."""
    last_wanted: int
    """The number of the last line that was asked for and is there."""
    line_count: int
    """Of the whole text."""
    first_line_bytes: int

    @property
    def last(self) -> int:
        """The number of the last line shown; one less than `first` when there is none."""
        # An empty line at the end of the page is a line, though the cut text does not count it.
        if not self.shown.truncated:
            return self.last_wanted
        return self.first + self.shown.output_lines - 1


def page_of(text: str, wanted: RequestedLines) -> ReadPage:
    """Cut a page out of a whole text.

    Raises:
        ToolError: The text ends before its first line.
    """
    line_count = count_lines(text)
    check_offset(wanted.first, line_count=line_count)
    chosen = _lines(text, wanted)
    return ReadPage(
        shown=truncate_head(chosen),
        first=wanted.first,
        last_wanted=wanted.last_of(line_count),
        line_count=line_count,
        first_line_bytes=byte_count(chosen.partition("\n")[0]),
    )


def check_offset(first: int, *, line_count: int) -> None:
    """Refuse a page behind the end of a text.

    Raises:
        ToolError: It is that.
    """
    if first > max(line_count, 1):
        message = f"Offset {first} is beyond end of file ({line_count} lines total)"
        raise ToolError(message)


def page_result(
    page: ReadPage, *, facts: Mapping[str, JsonValue], whole_line: str, note: str = ""
) -> ToolResult:
    """Return a page to the model.

    Args:
        page: The page.
        facts: Details of the file for front ends, besides those of the page.
        whole_line: A command that writes the page's first line, for when that is too long to be shown.
        note: One more sentence for the model.
    """
    shown = page.shown
    details: dict[str, JsonValue] = {
        **facts,
        "line_count": page.line_count,
        "first_line": page.first,
        "last_line": page.last,
        "truncated": shown.truncated,
    }
    if shown.truncated:
        details["truncation"] = _truncation_facts(shown)
    parts = (shown.content, _notice(page, whole_line), f"[{note}]" if note else "")
    if shown.first_line_exceeds_limit:
        parts = parts[1:]
    if not any(parts[1:]):
        return text_result(parts[0], details=details)
    return text_result("\n\n".join(part for part in parts if part), details=details)


def _notice(page: ReadPage, whole_line: str) -> str:
    shown, last, total = page.shown, page.last, page.line_count
    limit = format_size(shown.max_bytes)
    if shown.first_line_exceeds_limit:
        size = format_size(page.first_line_bytes)
        return f"[Line {page.first} is {size}, exceeds {limit} limit. Use bash: {whole_line} | head -c {shown.max_bytes}]"
    if shown.truncated and last < total:
        why = f" ({limit} limit)" if shown.truncated_by == "bytes" else ""
        return f"[Showing lines {page.first}-{last} of {total}{why}. Use offset={last + 1} to continue.]"
    if last < total:
        return f"[{total - last} more lines in file. Use offset={last + 1} to continue.]"
    return ""


def _lines(text: str, wanted: RequestedLines) -> str:
    """Cut out whole lines; the newline at the end stays only at the end of the text."""
    start = 0
    for _ in range(wanted.first - 1):
        start = text.find("\n", start) + 1
    if wanted.count is None:
        return text[start:]
    stop = start - 1
    for _ in range(wanted.count):
        stop = text.find("\n", stop + 1)
        if stop < 0 or stop == len(text) - 1:
            return text[start:]
    return text[start:stop]


def _truncation_facts(shown: Truncation) -> JsonObject:
    return {name: value for name, value in asdict(shown).items() if name != "content"}  # pyright: ignore[reportAny] - the fields are JSON


class PageScan:
    """Cuts the same page out of a text that comes in pieces, in little memory.

    The pieces are UTF-8 and may end anywhere, also inside a character.
    """

    def __init__(self, wanted: RequestedLines) -> None:
        self._wanted = wanted
        self._newlines = 0
        self._last_byte = b""
        self._chosen = _Chosen()

    def add(self, piece: bytes) -> None:
        """Add the next piece. CPU work: a millisecond or less for a million bytes."""
        if not piece:
            return
        before = self._newlines
        self._newlines += piece.count(b"\n")
        self._last_byte = piece[-1:]
        begin, end = self._wanted.first - 1, self._end
        if self._newlines < begin or (end is not None and before >= end):
            return
        stop = len(piece)
        if end is not None and self._newlines >= end:
            stop = _behind(piece, end - before) - 1
        self._chosen.take(piece, _behind(piece, begin - before), stop)

    def page(self) -> ReadPage:
        """Return the page, when all pieces are there.

        Raises:
            ToolError: The text ended before its first line.
        """
        ends_open = self._last_byte not in {b"", b"\n"}
        line_count = self._newlines + ends_open
        check_offset(self._wanted.first, line_count=line_count)
        if self._newlines == self._end and not ends_open:
            # The newline of the last line asked for is the end of the text.
            self._chosen.take(b"\n", 0, 1)
        return ReadPage(
            shown=self._chosen.truncated(),
            first=self._wanted.first,
            last_wanted=self._wanted.last_of(line_count),
            line_count=line_count,
            first_line_bytes=self._chosen.first_line_bytes,
        )

    @property
    def _end(self) -> int | None:
        """How many newlines there are up to the last line asked for, its own included."""
        count = self._wanted.count
        return None if count is None else self._wanted.first - 1 + count


class _Chosen:
    """The lines that were asked for: their beginning, and figures of all of them."""

    def __init__(self) -> None:
        self.first_line_bytes = 0
        self._newlines = 0
        self._size = 0
        self._last_byte = b""
        self._head = bytearray()

    def take(self, piece: bytes, start: int, stop: int) -> None:
        """Add the part of a piece from `start` to `stop`, in bytes; nothing if it is empty."""
        if start >= stop:
            return
        if self._newlines == 0:
            line_end = piece.find(b"\n", start, stop)
            self.first_line_bytes += (stop if line_end < 0 else line_end) - start
        self._newlines += piece.count(b"\n", start, stop)
        self._size += stop - start
        self._last_byte = piece[stop - 1 : stop]
        self._head += piece[start : min(stop, start + HEAD_BYTES - len(self._head))]

    def truncated(self) -> Truncation:
        """Cut what was taken to what is shown."""
        # A character that the end of the head cut in two is behind what is shown.
        shown = truncate_head(self._head.decode("utf-8", "ignore"))
        if self._size == len(self._head):
            return shown
        lines = self._newlines + (self._last_byte != b"\n")
        return replace(shown, total_lines=lines, total_bytes=self._size)


def _behind(piece: bytes, newlines: int) -> int:
    """Return the place behind so many newlines; 0 for none or less."""
    place = 0
    for _ in range(newlines):
        place = piece.index(b"\n", place) + 1
    return place
