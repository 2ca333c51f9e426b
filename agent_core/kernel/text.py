"""Text for models and people: cut to a number of lines and bytes, and with everything hidden made visible; pure."""

import re
import unicodedata
from functools import cache
from typing import Final, Literal

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


_ESCAPES: Final = (
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, moving, erasing
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC and its kin
    r"|\x1b[ -/]{1,4}[0-~]|\x1b[0-OQ-WYZ\\`-~]"
)
_HIDDEN: Final = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 but \t \n \r, DEL, C1
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_PARTIAL: Final = (
    r"\x1b|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}|\x1b[ -/]{1,4}"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]{0,4096}\x1b?"
)
_SHOWN: Final = re.compile(r"<U\+([0-9A-F]{4,6})>")
_JOINER: Final = "\u200d"
_NON_JOINER: Final = "\u200c"
_MARKS: Final = range(0xFE00, 0xFE10)
_KEYS: Final = "0123456789#*\xa9\xae\u203c\u2049\u2122\u2139"
"""Characters that are not emoji but may be drawn as one."""
_EMOJI: Final = range(0x1F000, 0x1FB00)
_SYMBOLS: Final = range(0x2190, 0x2C00)
_JOINED_SCRIPTS: Final = (range(0x0600, 0x0780), range(0x0900, 0x0E00), range(0xFB50, 0xFE00))
"""Arabic and the scripts of India, whose letters are told by joiners how to stand together."""


@cache
def _hidden() -> re.Pattern[str]:
    return re.compile(rf"[{_HIDDEN}]")


@cache
def _lone_return() -> re.Pattern[str]:
    return re.compile(r"\r(?!\n)")


@cache
def _escapes() -> re.Pattern[str]:
    return re.compile(_ESCAPES)


@cache
def _partial() -> re.Pattern[str]:
    return re.compile(_PARTIAL)


@cache
def _openings() -> re.Pattern[str]:
    return re.compile("[\x1b\x90\x98\x9b\x9d-\x9f]")


def shown(text: str) -> str:
    r"""Return a text with everything hidden in it written out, `<U+202E>`; nothing is dropped.

    Line breaks (also `\r` before `\n`) and tabs stay. So do joiners where a script or an emoji needs them.
    """
    if text.isascii() and text.isprintable():
        return text
    whole = _hidden().sub(_sign, text)
    return _lone_return().sub("<U+000D>", whole) if "\r" in whole else whole


def readable(text: str) -> str:
    """Return a name with everything hidden written out, and bytes that are no characters, which no wire takes, too."""
    return shown(text.encode("utf-8", "backslashreplace").decode())


def plain(text: str) -> str:
    r"""Return what a command wrote as words: orders to a terminal dropped, what else is hidden written out.

    A line that was written over and over, `\r`, becomes lines.
    """
    if text.isascii() and text.isprintable():
        return text
    text = without_escapes(text)
    if "\r" in text:
        text = _lone_return().sub("\n", text)
    return _hidden().sub(_sign, text)


def without_escapes(text: str) -> str:
    """Return a text without the control sequences of terminals."""
    return _escapes().sub("", text) if "\x1b" in text or not text.isascii() else text


def for_model(text: str) -> str:
    r"""Return the text of a file or a tool for a model: invisible characters are written out, `\r` stays as it is."""
    if text.isascii() and text.isprintable():
        return text
    return _hidden().sub(_sign, text)


def one_line(text: str) -> str:
    """Return a name or title on one line, with everything hidden written out."""
    return shown(" ".join(text.split()))


def as_meant(text: str) -> str:
    """Return a text in which `<U+202E>` stands for the sign itself, as a model copies it from what it read."""
    return _SHOWN.sub(_meant, text)


def unfinished(text: str) -> int:
    """Return where the end of a text may be the beginning of an order to a terminal; the text's length: nowhere."""
    place = 0
    while (opening := _openings().search(text, place)) is not None:
        whole = _escapes().match(text, opening.start())
        if whole is None and _partial().fullmatch(text, opening.start()):
            return opening.start()
        place = opening.end() if whole is None else whole.end()
    return len(text) - 1 if text.endswith("\r") else len(text)


class PlainStream:
    """`plain` for a text that comes in pieces."""

    def __init__(self) -> None:
        self._kept = ""

    def push(self, text: str) -> str:
        """Add text; return the complete part, as plain text."""
        whole = self._kept + text
        cut = unfinished(whole)
        self._kept = whole[cut:]
        return plain(whole[:cut])

    def finish(self) -> str:
        """Return the rest."""
        rest, self._kept = self._kept, ""
        return plain(rest)


def _sign(found: re.Match[str]) -> str:
    sign = found[0]
    text, place = found.string, found.start()
    if _is_needed(sign, text, place):
        return sign
    return f"<U+{ord(sign):04X}>"


def _is_needed(sign: str, text: str, place: int) -> bool:
    """Return whether a sign that shows nothing itself belongs to what stands beside it."""
    before = ord(text[place - 1]) if place else 0
    after = ord(text[place + 1]) if place + 1 < len(text) else 0
    if ord(sign) in _MARKS:
        return _is_picture(before) or chr(before) in _KEYS
    if sign == _JOINER and (_is_picture(before) or before in _MARKS) and _is_picture(after):
        return True
    if sign in {_JOINER, _NON_JOINER}:
        return any(before in script and after in script for script in _JOINED_SCRIPTS)
    return False


def _is_picture(point: int) -> bool:
    return point in _EMOJI or point in _SYMBOLS


def _meant(found: re.Match[str]) -> str:
    point = int(found[1], 16)
    sign = chr(point) if point <= 0x10FFFF else ""  # noqa: PLR2004 - the last code point there is
    return sign if sign and _hidden().match(sign) else found[0]


def cell_count(text: str) -> int:
    """Return how many cells of a terminal a text takes: wide characters take two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
