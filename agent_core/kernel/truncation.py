"""Cuts text to a number of lines and bytes without breaking a character, and says what was cut: pure."""

from typing import Literal

from agent_core.kernel.values import Value

DEFAULT_MAX_LINES = 2_000
DEFAULT_MAX_BYTES = 51_200
DEFAULT_MAX_CHARS = 500
LINE_SUFFIX = "... [truncated]"
KIB = 1_024

CutBy = Literal["lines", "bytes", "chars"]


class Truncation(Value, frozen=True, kw_only=True):
    """A truncated text, with its size before and after. A final newline does not start another line."""

    content: str
    truncated: bool
    truncated_by: CutBy | None
    """Which limit was met first; None: nothing was cut."""
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    last_line_partial: bool = False
    """Tail: the one line that is left begins somewhere inside."""
    first_line_exceeds_limit: bool = False
    """Head: not even the first line fits, so nothing is left."""
    max_lines: int
    max_bytes: int
    """For a single line: characters."""


def truncate_head(
    text: str, *, max_lines: int = DEFAULT_MAX_LINES, max_bytes: int = DEFAULT_MAX_BYTES
) -> Truncation:
    """Keep whole lines from the beginning."""
    whole = _whole(text, max_lines=max_lines, max_bytes=max_bytes)
    if not whole.truncated:
        return whole
    end = used = lines = 0
    cut_by: CutBy = "lines"
    while lines < min(max_lines, whole.total_lines):
        stop = _line_end(text, end if lines == 0 else end + 1)
        size = byte_count(text[end:stop])  # with the newline before it, which only the first lacks
        if used + size > max_bytes:
            cut_by = "bytes"
            break
        end, used, lines = stop, used + size, lines + 1
    if lines == whole.total_lines:
        cut_by = "bytes"  # only the newline at the end did not fit
    return Truncation(
        content=text[:end],
        truncated=True,
        truncated_by=cut_by,
        total_lines=whole.total_lines,
        total_bytes=whole.total_bytes,
        output_lines=lines,
        output_bytes=used,
        first_line_exceeds_limit=lines == 0 and cut_by == "bytes",
        max_lines=max_lines,
        max_bytes=max_bytes,
    )


def truncate_tail(
    text: str, *, max_lines: int = DEFAULT_MAX_LINES, max_bytes: int = DEFAULT_MAX_BYTES
) -> Truncation:
    """Keep whole lines from the end, or the end of the last line when that alone is too long."""
    whole = _whole(text, max_lines=max_lines, max_bytes=max_bytes)
    if not whole.truncated:
        return whole
    last = len(text) - 1 if text.endswith("\n") else len(text)
    begin, used, lines = last, 0, 0
    cut_by: CutBy = "lines"
    partial = False
    while lines < min(max_lines, whole.total_lines):
        stop = begin if lines == 0 else begin - 1
        start = text.rfind("\n", 0, stop) + 1
        size = byte_count(text[start : stop if lines == 0 else stop + 1])
        if used + size > max_bytes:
            cut_by = "bytes"
            break
        begin, used, lines = start, used + size, lines + 1
    content = text[begin:last]
    if lines == whole.total_lines:
        cut_by = "bytes"  # only the newline at the end did not fit
    elif lines == 0 and cut_by == "bytes":
        content = cut_bytes_from_end(text[text.rfind("\n", 0, last) + 1 : last], max_bytes)
        used, lines, partial = byte_count(content), 1, True
    return Truncation(
        content=content,
        truncated=True,
        truncated_by=cut_by,
        total_lines=whole.total_lines,
        total_bytes=whole.total_bytes,
        output_lines=lines,
        output_bytes=used,
        last_line_partial=partial,
        max_lines=max_lines,
        max_bytes=max_bytes,
    )


def truncate_line(line: str, *, max_chars: int = DEFAULT_MAX_CHARS) -> Truncation:
    """Keep the beginning of one line and mark the cut."""
    truncated = len(line) > max_chars
    content = line[:max_chars] + LINE_SUFFIX if truncated else line
    return Truncation(
        content=content,
        truncated=truncated,
        truncated_by="chars" if truncated else None,
        total_lines=1,
        total_bytes=byte_count(line),
        output_lines=1,
        output_bytes=byte_count(content),
        max_lines=1,
        max_bytes=max_chars,
    )


def count_lines(text: str) -> int:
    """Count lines; a newline at the very end makes no line of its own."""
    if not text:
        return 0
    return text.count("\n") + (0 if text.endswith("\n") else 1)


def byte_count(text: str) -> int:
    """Count the bytes of a text in UTF-8; a lone surrogate counts as three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def cut_bytes(text: str, limit: int) -> str:
    """Keep whole characters from the beginning, at most `limit` bytes of UTF-8."""
    head = text[: max(limit, 0)]
    if head.isascii():
        return head
    return head.encode("utf-8", "surrogatepass")[:limit].decode("utf-8", "ignore")


def cut_bytes_from_end(text: str, limit: int) -> str:
    """Keep whole characters from the end, at most `limit` bytes of UTF-8."""
    if limit <= 0:
        return ""
    tail = text[-limit:]
    if tail.isascii():
        return tail
    return tail.encode("utf-8", "surrogatepass")[-limit:].decode("utf-8", "ignore")


def format_size(size: int) -> str:
    """Write a number of bytes for people: `1023B`, `1.0KB`, `1.0MB`."""
    if size < KIB:
        return f"{size}B"
    if size < KIB * KIB:
        return f"{size / KIB:.1f}KB"
    return f"{size / (KIB * KIB):.1f}MB"


def _whole(text: str, *, max_lines: int, max_bytes: int) -> Truncation:
    """Describe the text uncut; `truncated` says whether it must be cut."""
    lines, size = count_lines(text), byte_count(text)
    return Truncation(
        content=text,
        truncated=lines > max_lines or size > max_bytes,
        truncated_by=None,
        total_lines=lines,
        total_bytes=size,
        output_lines=lines,
        output_bytes=size,
        max_lines=max_lines,
        max_bytes=max_bytes,
    )


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
