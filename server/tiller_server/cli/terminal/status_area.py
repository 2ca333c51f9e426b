"""A few lines at the bottom of a terminal that are drawn again and again, below what stays."""

import shutil
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tiller_server.cli.terminal.stdio import Stream

ERASE_LINE: Final = "\r\x1b[2K"
UP: Final = "\x1b[1A"
HIDE_CURSOR: Final = "\x1b[?25l"
SHOW_CURSOR: Final = "\x1b[?25h"
LINES: Final = 24
COLUMNS: Final = 80


def terminal_size() -> tuple[int, int]:
    """Return columns and lines of the terminal; those of an ordinary one when it does not say."""
    size = shutil.get_terminal_size((COLUMNS, LINES))
    return size.columns, size.lines


class Surface(Protocol):
    """Where lines that stay stand above lines that change."""

    @property
    def columns(self) -> int:
        """How wide it is now."""
        ...

    @property
    def lines(self) -> int:
        """How high it is now."""
        ...

    def above(self, text: str) -> None:
        """Write what stays: whole lines."""
        ...

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines at the bottom, in the place of those that were shown."""
        ...

    def close(self) -> None:
        """Remove the lines at the bottom."""
        ...


class StatusArea:
    """Writes above the lines that change. The terminal is put in order by `close`."""

    def __init__(self, out: Stream, *, size: Callable[[], tuple[int, int]] = terminal_size) -> None:
        self._out = out
        self._size = size
        self._drawn: Sequence[str] = ()

    @property
    def columns(self) -> int:
        """How wide it is now."""
        return max(self._size()[0], 1)

    @property
    def lines(self) -> int:
        """How high it is now."""
        return max(self._size()[1], 1)

    def above(self, text: str) -> None:
        """Write what stays: whole lines.

        Raises:
            OutputLost: It goes nowhere.
        """
        drawn = self._drawn
        self._put(self._erasing() + text)
        self.draw(drawn)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines at the bottom, in the place of those that were shown; each fits into the width.

        Raises:
            OutputLost: It goes nowhere.
        """
        lines = tuple(lines)[-(self.lines - 1) :] if self.lines > 1 else ()
        if lines == self._drawn:
            return
        text = self._erasing()
        if lines:
            text += HIDE_CURSOR + "\n".join(lines)
        self._drawn = lines
        self._put(text)

    def close(self) -> None:
        """Remove the lines at the bottom, and show the cursor again."""
        if self._drawn:
            self._put(self._erasing())

    def _erasing(self) -> str:
        if not self._drawn:
            return ""
        text = ERASE_LINE + f"{UP}{ERASE_LINE}" * (len(self._drawn) - 1) + SHOW_CURSOR
        self._drawn = ()
        return text

    def _put(self, text: str) -> None:
        if text:
            _ = self._out.write(text)
            _ = self._out.flush()
