"""Cuts Markdown that is still being written into blocks that will not change any more: pure, and linear in its length."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

MOST_LINES: Final = 200
"""Longest block in lines. A longer block is cut: printed lines need not be redrawn at each tick."""
MOST_CHARS: Final = 8_192
"""The same for a line without an end."""
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_CLOSERS: Final[Mapping[str, re.Pattern[str]]] = {
    "`": re.compile(r" {0,3}(`{3,})\s*$"),
    "~": re.compile(r" {0,3}(~{3,})\s*$"),
}


class Blocks(Struct):
    """Splitter of streamed Markdown; returns each block once, when later text cannot change it."""

    _lines: list[str] = msgspec.field(default_factory=list)
    """Whole lines of the block that is being written."""
    _rest: list[str] = msgspec.field(default_factory=list)
    """Pieces of the line without an end."""
    _rest_chars: int = 0
    _fence: str = ""
    """The line that opened a fence of code which is not closed."""
    _is_apart: bool = False
    """A blank line came since."""

    def feed(self, text: str) -> list[str]:
        """Append text; return the blocks that are complete now."""
        done: list[str] = []
        *whole, rest = text.split("\n")
        for line in whole:
            self._rest.append(line)
            done.extend(self._take("".join(self._rest)))
            self._rest.clear()
            self._rest_chars = 0
        if rest:
            self._rest.append(rest)
            self._rest_chars += len(rest)
        if self._rest_chars > MOST_CHARS:
            done.extend(self._cut_rest())
        return done

    def finish(self) -> list[str]:
        """Return what is left; the next words begin anew."""
        done: list[str] = []
        if self._rest:
            done.extend(self._take("".join(self._rest)))
        done.extend(self._flush())
        self._rest.clear()
        self._rest_chars, self._fence, self._is_apart = 0, "", False
        return done

    @property
    def tail(self) -> str:
        """Text so far of the block that is being written."""
        return "\n".join((*self._lines, "".join(self._rest))).rstrip("\n")

    def _take(self, line: str) -> list[str]:
        if self._fence:
            return self._in_fence(line)
        if not line.strip():
            self._is_apart = bool(self._lines)
            if self._lines:
                self._lines.append("")
            return []
        done = self._flush() if self._begins_anew(line) else []
        self._is_apart = False
        self._lines.append(line)
        if (opened := _FENCE.match(line)) and not (opened[1][0] == "`" and "`" in opened[2]):
            self._fence = line
        elif len(self._lines) >= MOST_LINES:
            done.extend(self._flush())
        return done

    def _in_fence(self, line: str) -> list[str]:
        self._lines.append(line)
        opened = _FENCE.match(self._fence)
        mark = opened[1] if opened else "```"
        closed = _CLOSERS[mark[0]].match(line)
        if closed and len(closed[1]) >= len(mark):
            self._fence = ""
            return []
        if len(self._lines) < MOST_LINES:
            return []
        # What follows is the same piece of code: it is opened again where it was cut.
        self._lines.append(mark)
        done = self._flush()
        self._lines.append(self._fence)
        return done

    def _begins_anew(self, line: str) -> bool:
        """Return whether a line that follows a blank one is no part of what stood before it."""
        if not self._is_apart or line[0] in " \t":
            return False
        both_items = _ITEM.match(line) and _ITEM.match(self._lines[0])
        return not both_items or len(self._lines) >= MOST_LINES

    def _cut_rest(self) -> list[str]:
        whole = "".join(self._rest)
        cut = whole.rfind(" ", 0, MOST_CHARS) + 1 or MOST_CHARS
        done: list[str] = []
        while len(whole) > MOST_CHARS:
            done.extend(self._take(whole[:cut]))
            if not self._fence:
                done.extend(self._flush())
            whole = whole[cut:]
            cut = whole.rfind(" ", 0, MOST_CHARS) + 1 or MOST_CHARS
        self._rest[:] = [whole]
        self._rest_chars = len(whole)
        return done

    def _flush(self) -> list[str]:
        block = "\n".join(self._lines).strip("\n")
        self._lines.clear()
        self._is_apart = False
        return [block] if block else []
