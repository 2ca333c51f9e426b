"""A menu above the input line: the answers to a question, or a list to choose from."""

from collections.abc import Generator, Sequence
from typing import Final

from tiller_server.cli.terminal.permission_prompt import AnswerChoice
from tiller_server.cli.terminal.text import BOLD, clipped, styled

MARK: Final = "\N{BLACK RIGHT-POINTING TRIANGLE}"
"""Stands before the marked row."""
MOST_ROWS: Final = 10


class ChoiceMenu:
    """Rows, one of them marked. Without rows it is closed."""

    def __init__(self) -> None:
        self._choices: Sequence[AnswerChoice] = ()
        self._marked = 0
        self._first = 0
        """The row that was marked at first: for a question an empty line stands for it too."""
        self._text: str = ""
        self.is_list = False
        """It is a list, which typed text filters, and not the answers to a question."""

    def open(self, choices: Sequence[AnswerChoice], marked: int, *, is_list: bool) -> None:
        """Show rows, or none."""
        self._choices, self._marked, self._first = choices, marked, marked
        self._text, self.is_list = "", is_list and bool(choices)

    @property
    def is_open(self) -> bool:
        """Whether it has rows."""
        return bool(self._choices)

    @property
    def is_moved(self) -> bool:
        """Whether another row is marked than at first."""
        return self._marked != self._first

    def move(self, by: int, text: str) -> None:
        """Mark another row of those that a text leaves; after the last comes the first."""
        if rows := self._filtered(text):
            self._marked = (self._marked + by) % len(rows)

    def line(self, text: str) -> str | None:
        """Return the line of the marked row; None: the text leaves no row, and stands for itself."""
        rows = self._filtered(text)
        return rows[self._marked].line if rows else None

    def shown(self, text: str, cells: int) -> Generator[str]:
        """Return the lines that show the rows around the marked one, cut to a width."""
        rows = self._filtered(text)
        begin = max(0, min(self._marked - MOST_ROWS // 2, len(rows) - MOST_ROWS))
        for index, one in enumerate(rows[begin : begin + MOST_ROWS], begin):
            label = clipped(one.label, cells - 2)
            is_marked = index == self._marked
            yield f"{MARK} {styled(label, BOLD, colour=True)}" if is_marked else f"  {label}"
        if (hidden := len(rows) - MOST_ROWS) > 0:
            yield f"  {hidden} more: arrow keys, or type to filter"

    def _filtered(self, text: str) -> Sequence[AnswerChoice]:
        """Return the rows that hold a typed text, or whose number it is; a new text marks the first of them."""
        if not self.is_list:
            return self._choices
        wanted: str = text.strip().lower()
        if wanted != self._text:
            self._text, self._marked = wanted, 0
        if wanted.isdecimal():
            return [one for one in self._choices if one.line == wanted]
        return [one for one in self._choices if wanted in one.label.lower()]
