"""A text with its line endings taken as LF, and the way back to the text as it is: pure."""

CRLF = "\r\n"


def with_lf(text: str) -> str:
    """Convert every line ending to LF."""
    return text.replace(CRLF, "\n").replace("\r", "\n") if "\r" in text else text


class Endings:
    """Knows which ending each line of a text has."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.lf = with_lf(text)
        self._anchor = (0, 0)
        """An offset in the LF text and the same one in the text itself."""

    def original(self, offset: int) -> int:
        """Turn an offset in the LF text into one in the text itself; cheapest when asked in order."""
        if self.lf is self._text:
            return offset
        self._anchor = (offset, self._from_anchor(offset))
        return self._anchor[1]

    def _from_anchor(self, offset: int) -> int:
        anchor, at = self._anchor if self._anchor[0] <= offset else (0, 0)
        missing = offset - anchor
        while missing:
            stop = at + missing
            stop += self._text.startswith(CRLF, stop - 1)
            # Of every CRLF passed by, one character was of no use for the way.
            missing -= stop - at - self._text.count(CRLF, at, stop)
            at = stop
        return at

    def in_style_of(self, text: str, *, at: int) -> str:
        """Return a text with the ending of the line that holds an offset; the last line takes its neighbour's."""
        if self.lf is self._text or "\n" not in text:
            return text
        newline = self.lf.find("\n", at)
        if newline < 0:
            newline = self.lf.rfind("\n", 0, at)
        if newline < 0:
            return text
        begin = self._from_anchor(newline)
        ending = self._text[begin : begin + 2]
        return text.replace("\n", ending if ending == CRLF else ending[0])
