"""Places in a text: offsets to LSP positions and back, in each of the three encodings."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final, Literal, TypeAlias

PositionEncoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

CHUNK: Final = 1 << 15
"""So much of a text is cut into lines at once."""
_END: Final = re.compile(r"\r\n|\n|\r")
_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
_CONTINUES: Final = 0b10
"""The two leading bits of a byte that goes on with a character of UTF-8."""


class LineIndex:
    r"""A text and where its lines begin. A line ends with `\n`, `\r\n` or `\r`.

    Lines are looked for only as far as somebody asks, and those before a change are kept for the text after it:
    typing in a document of ten megabytes costs no search. Not for use by two threads at once.
    """

    __slots__ = ("_done", "_starts", "encoding", "text")

    def __init__(
        self, text: str, encoding: PositionEncoding, *, starts: list[int] | None = None
    ) -> None:
        """Create the line index of a text.

        Args:
            text: The text; it never changes.
            encoding: The units in which positions count.
            starts: Where its first lines are known to begin; owned by the object from now on.
        """
        self.text = text
        self.encoding: PositionEncoding = encoding
        self._starts = starts or [0]
        self._done = False

    def offset(self, line: int, character: int) -> int:
        r"""Return the index in the text of a position that the editor sent.

        A position beyond the end of a line or of the text is moved back to that end; one inside a character, to the
        beginning of the character. One unit beyond a line that ends with `\r\n` is the place between the two: Vim
        treats the `\r` as text in a file that has other line ends too.
        """
        if line < 0:
            return 0
        self._look(line=line + 1)
        if line >= len(self._starts):
            return len(self.text)
        start = self._starts[line]
        stop = self._stop(line)
        if self.text.startswith("\r\n", stop):
            stop += 1
        content = self.text[start:stop]
        found = _index(content, max(0, character), self.encoding)
        if found == len(content) and content.endswith("\r"):
            # Exactly one unit beyond, or far beyond?
            found -= character != _units(content, self.encoding)
        return start + found

    def position(self, offset: int) -> tuple[int, int]:
        r"""Return line and character of an index in the text; between `\r` and `\n` that is the end of the line."""
        offset = min(max(0, offset), len(self.text))
        self._look(offset=offset)
        line = bisect_right(self._starts, offset) - 1
        start = self._starts[line]
        return line, _units(self.text[start : min(offset, self._stop(line))], self.encoding)

    def spliced(self, start: int, end: int, new_text: str) -> "LineIndex":
        """Return the text with a part replaced; the index of the lines before that part is kept."""
        text = "".join((self.text[:start], new_text, self.text[end:]))
        # A line that begins right at the change may follow a "\r" that gets its "\n" now.
        kept = max(1, bisect_right(self._starts, start - 1))
        return LineIndex(text, self.encoding, starts=self._starts[:kept])

    def _stop(self, line: int) -> int:
        """Return where the content of a line ends, without its line end. The line after it has been looked for."""
        if line + 1 >= len(self._starts):
            return len(self.text)
        stop = self._starts[line + 1] - 1
        has_both = self.text[stop] == "\n" and stop > 0 and self.text[stop - 1] == "\r"
        return stop - 1 if has_both else stop

    def _look(self, *, line: int = -1, offset: int = -1) -> None:
        """Find line beginnings up to the one of this number and the first one behind this offset."""
        starts = self._starts
        while not self._done and (len(starts) <= line or starts[-1] <= offset):
            at = starts[-1]
            end = min(len(self.text), at + CHUNK)
            end += self.text.startswith("\r\n", end - 1)
            found = _line_ends(self.text[at:end], at)
            while not found and end < len(self.text):
                # A very long line: look in ever larger parts for where it ends.
                more = min(len(self.text), end + (end - at))
                more += self.text.startswith("\r\n", more - 1)
                found, end = _line_ends(self.text[end:more], end), more
            starts += found
            self._done = end == len(self.text)


def positions(
    text: str, offsets: Iterable[int], encoding: PositionEncoding
) -> Iterator[tuple[int, int]]:
    """Return line and character of places in a text, which come in order and are in no line end; counts lines, keeps none."""
    line = done = 0
    for offset in offsets:
        line += text.count("\n", done, offset)
        if returns := text.count("\r", done, offset):
            line += returns - text.count("\r\n", done, offset)
        start = text.rfind("\n", 0, offset) + 1
        start = text.rfind("\r", start, offset) + 1 or start
        done = offset
        yield line, _units(text[start:offset], encoding)


def _line_ends(part: str, at: int) -> list[int]:
    """Return where lines end in a part of a text, as offsets in that text."""
    lines = part.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        _ = lines.pop()
    ends = part.count("\n") + part.count("\r") - part.count("\r\n")
    if len(lines) != ends:
        # Python also cuts at form feeds, U+2028 and the like.
        return [at + match.end() for match in _END.finditer(part)]
    return [*accumulate(map(len, lines), initial=at)][1:]


def _units(content: str, encoding: PositionEncoding) -> int:
    """Count the code units of a part of a line."""
    if content.isascii() or encoding == "utf-32":
        return len(content)
    if encoding == "utf-16":
        return len(content) + sum(1 for _ in _ASTRAL.finditer(content))
    return len(content.encode("utf-8", "surrogatepass"))


def _index(content: str, units: int, encoding: PositionEncoding) -> int:
    """Return the index that lies so many code units into a line."""
    if content.isascii() or encoding == "utf-32":
        return min(units, len(content))
    if encoding == "utf-16":
        return _index_of_utf16(content, units)
    raw = content.encode("utf-8", "surrogatepass")
    end = min(units, len(raw))
    while end < len(raw) and raw[end] >> 6 == _CONTINUES:
        end -= 1
    return len(raw[:end].decode("utf-8", "surrogatepass"))


def _index_of_utf16(content: str, units: int) -> int:
    pairs = 0
    for match in _ASTRAL.finditer(content):
        first = match.start() + pairs
        if first >= units:
            break
        if first + 1 == units:
            return match.start()
        pairs += 1
    return min(units - pairs, len(content))
