"""Cuts the blocks of a file into lines, so that never more than a block and a line are held."""

from collections.abc import Iterable, Iterator

RawLine = tuple[int, bytes, bool]
"""Where it begins, its bytes without the newline, and whether it has one."""


def lines_of(blocks: Iterable[bytes]) -> Iterator[RawLine]:
    """Return every line; bytes after the last newline come last, if there are any."""
    start = 0
    carried: list[bytes] = []
    for block in blocks:
        *whole, rest = block.split(b"\n")
        for piece in whole:
            line = b"".join((*carried, piece)) if carried else piece
            carried.clear()
            yield start, line, True
            start += len(line) + 1
        if rest:
            carried.append(rest)
    if carried:
        yield start, b"".join(carried), False
