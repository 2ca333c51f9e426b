"""A text with its line endings taken as LF, and the way back to the text as it is: pure."""

import re
from bisect import bisect_left
from functools import cached_property

CRLF = "\r\n"


def with_lf(text: str) -> str:
    """Take every line ending as LF."""
    return text.replace(CRLF, "\n").replace("\r", "\n") if "\r" in text else text


class Endings:
    """Knows which ending each line of a text has."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.lf = with_lf(text)

    @cached_property
    def _all_wide(self) -> bool:
        """Whether every ending is two characters long."""
        return self._text.count(CRLF) == self.lf.count("\n")

    @cached_property
    def _wide(self) -> list[int]:
        """Where in the LF text the endings are that are two characters long in the text itself."""
        return [found.start() - index for index, found in enumerate(re.finditer(CRLF, self._text))]

    def original(self, offset: int) -> int:
        """Turn an offset in the LF text into one in the text itself."""
        if self.lf is self._text:
            return offset
        if self._all_wide:
            return offset + self.lf.count("\n", 0, offset)
        return offset + bisect_left(self._wide, offset)

    def in_style_of(self, text: str, *, at: int) -> str:
        """Give a text with the ending of the line that holds an offset; the last line takes its neighbour's."""
        if self.lf is self._text or "\n" not in text:
            return text
        newline = self.lf.find("\n", at)
        if newline < 0:
            newline = self.lf.rfind("\n", 0, at)
        if newline < 0:
            return text
        begin = self.original(newline)
        ending = self._text[begin : begin + 2]
        return text.replace("\n", ending if ending == CRLF else ending[0])
