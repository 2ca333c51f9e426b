"""Collects the lines that a search finds, up to its limits, and writes them out: pure."""

from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.kernel.truncation import DEFAULT_MAX_CHARS, LINE_SUFFIX
from agent_core.kernel.values import Value

ENOUGH_CHARS = 4_194_304
"""More is not collected, whatever the limit: a small part of it is shown."""


class GrepLine(Value, frozen=True):
    """A line of a file."""

    kind: Literal["match", "context"]
    number: int
    text: str
    """Its beginning at least, without the end of the line."""
    is_cut: bool = False
    """There is more of it."""


class _File(Struct, kw_only=True):
    lines: list[str] = msgspec.field(default_factory=list[str])
    matches: int = 0
    chars: int = 0
    has_cut_lines: bool = False


class GrepMatches:
    """Lines found so far: matches and their context."""

    def __init__(self, *, limit: int, context: int) -> None:
        """Begin with nothing.

        Args:
            limit: How many matches are wanted.
            context: How many lines are wanted around each.
        """
        self._limit = limit
        self._context = context
        self._files: dict[str, _File] = {}
        self._waiting: list[GrepLine] = []
        """Context that belongs to the next match, if that is still wanted."""
        self._last = 0
        """The last line of the current file that is wanted as context of the match before it; 0: none is."""
        self.matches = 0
        self.limit_reached = False
        """There is at least one more match."""
        self._chars = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more is wanted."""
        return self.is_overfull or (self.limit_reached and not self._last)

    @property
    def is_overfull(self) -> bool:
        """Whether it is full for another reason than the limit."""
        return self._chars > ENOUGH_CHARS

    def begin(self) -> None:
        """Report that the next lines come from another file."""
        self._waiting.clear()
        self._last = 0

    def add(self, path: str, line: GrepLine) -> None:
        """Add a line of the current file."""
        if self.is_full:
            return
        if line.kind == "match" and self.matches == self._limit:
            self.limit_reached = True
        if line.number <= self._last and (line.kind == "context" or self.limit_reached):
            self._keep(path, replace(line, kind="context"))
        elif self.limit_reached:
            self.begin()
        elif line.kind == "context":
            self._waiting.append(line)
        else:
            self._take(path, line)

    def drop(self, path: str) -> None:
        """Forget a file: it turned out to be no text."""
        gone = self._files.pop(path, None)
        if gone is not None:
            self.matches -= gone.matches
            self._chars -= gone.chars

    @property
    def file_count(self) -> int:
        """How many files have matches."""
        return len(self._files)

    @property
    def has_cut_lines(self) -> bool:
        """Whether some lines are not shown whole."""
        return any(file.has_cut_lines for file in self._files.values())

    def text(self) -> str:
        """Write out all lines, by path."""
        return "\n".join(line for path in sorted(self._files) for line in self._files[path].lines)

    def _take(self, path: str, line: GrepLine) -> None:
        """Keep a match, with the context that was waiting for it."""
        for before in self._waiting:
            self._keep(path, before)
        self._waiting.clear()
        self._keep(path, line)
        self._last = line.number + self._context
        self.matches += 1
        self._files[path].matches += 1

    def _keep(self, path: str, line: GrepLine) -> None:
        file = self._files.setdefault(path, _File())
        text = line.text
        if line.is_cut or len(text) > DEFAULT_MAX_CHARS:
            text = text[:DEFAULT_MAX_CHARS] + LINE_SUFFIX
            file.has_cut_lines = True
        written = (
            f"{path}:{line.number}: {text}"
            if line.kind == "match"
            else f"{path}-{line.number}- {text}"
        )
        file.lines.append(written)
        file.chars += len(written)
        self._chars += len(written)
