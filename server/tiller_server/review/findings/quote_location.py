"""Finds a quoted text in a file: pure."""

from collections.abc import Sequence
from typing import Final

from agent_core.kernel.text import shown
from agent_core.kernel.values import Value

NEAR_LINES: Final = 60
"""A quote that stands at several places is meant where it is nearest, but no further than this."""
LEAST_CHARS: Final = 3


class QuoteLocation(Value, frozen=True, kw_only=True):
    """Lines of a file."""

    line: int
    """From 1."""
    end_line: int


def find_quote(lines: Sequence[str], quote: str, *, near: int) -> QuoteLocation | None:
    """Find a quoted text, blanks and line numbers aside; None when it is absent or its place is ambiguous.

    Args:
        lines: Lines of the file.
        quote: Text to find: whole lines, or a part of one.
        near: Line at which the text was reported, from 1.
    """
    wanted = quoted_lines(quote)
    if not wanted or sum(map(len, wanted)) < LEAST_CHARS:
        return None
    plain = [plain_line(line) for line in lines]
    found = [
        number
        for number in range(1, len(plain) - len(wanted) + 2)
        if _stands(plain, number, wanted)
    ]
    if not found:
        return None
    best = min(found, key=lambda number: abs(number - near))
    if len(found) > 1 and abs(best - near) > NEAR_LINES:
        return None
    return QuoteLocation(line=best, end_line=best + len(wanted) - 1)


def quoted_lines(quote: str) -> list[str]:
    """Return the lines of a quote without fences, signs of a diff and blank lines around."""
    raw = [line for line in quote.strip("\r\n").split("\n") if not line.strip().startswith("```")]
    plain = [plain_line(line) for line in raw]
    while plain and not plain[0]:
        del plain[0]
    while plain and not plain[-1]:
        del plain[-1]
    return plain


def plain_line(line: str) -> str:
    """Return a line with single blanks, and what is hidden in it written out, as the model reads it."""
    return " ".join(shown(line).split())


def _stands(plain: Sequence[str], number: int, wanted: Sequence[str]) -> bool:
    there = plain[number - 1 : number - 1 + len(wanted)]
    if len(wanted) == 1:
        return wanted[0] in there[0]
    return (
        there[0].endswith(wanted[0])
        and there[-1].startswith(wanted[-1])
        and there[1:-1] == list(wanted[1:-1])
    )
