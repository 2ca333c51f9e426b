"""Names a finding so that it is known again after lines, or the whole file, have moved: pure."""

import hashlib
from collections.abc import Iterator, Sequence

from server.review.findings import Category

MOST_PARENTS = 4


def fingerprint(lines: Sequence[str], *, line: int, category: Category) -> str:
    """Give the name of a finding: 32 hex digits.

    It is made of the first line of the finding and of the lines that it is indented below, whatever the language;
    neither of its number nor of the file's name (decision 0056).

    Args:
        lines: The file.
        line: The first line of the finding, from 1.
        category: What kind of finding it is.
    """
    parts = ["1", category, *_parents(lines, line), _plain(lines[line - 1])]
    return _digest(parts)


def numbered(name: str, ordinal: int) -> str:
    """Tell apart findings that have one name: the first, 0, keeps it."""
    return _digest([name, str(ordinal)]) if ordinal else name


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _parents(lines: Sequence[str], line: int) -> list[str]:
    return list(_above(lines, line))[:MOST_PARENTS]


def _above(lines: Sequence[str], line: int) -> Iterator[str]:
    depth = _depth(lines[line - 1])
    for text in reversed(lines[: line - 1]):
        if depth == 0:
            return
        plain = _plain(text)
        # A bracket or a label alone is no heading.
        if len(plain) > 1 and _depth(text) < depth and any(sign.isalnum() for sign in plain):
            depth = _depth(text)
            yield plain


def _depth(text: str) -> int:
    wide = text.expandtabs(4)
    return len(wide) - len(wide.lstrip())


def _plain(text: str) -> str:
    return " ".join(text.split())
