"""Names a finding so that it is known again after lines, or the whole file, have moved: pure."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from agent_core.kernel.values import Value
from tiller_server.review.findings.result import Category

AROUND: Final = 12
"""So many lines above and below are looked at."""
LEAST_SIGNS: Final = 3
"""A line with fewer letters and digits, a bracket for one, tells nothing."""
COMMENT: Final = re.compile(r"""#|//|/\*|\*|--|;|%|<!--|\"""|'''""")
"""Comments come and go while the code beside them stays."""
OWN_NAME: Final = re.compile(r"\w+(?=\s*(?:[(\[<{:=]|$))")
"""Name that a heading gives its block: the word before its first bracket, or its last word."""
MOST_PARENTS: Final = 4


def fingerprint(lines: Sequence[str], *, line: int, category: Category) -> str:
    """Return the name of a finding: 32 hex digits.

    It is made of the first line of the finding and of the longest other line that stands beside it, blanks aside. The
    lines that it is indented below count only when nothing else is there, and then without the name that they give their
    block; line numbers and the file's name do not count (decision 0056).

    Args:
        lines: The file.
        line: The first line of the finding, from 1.
        category: Category of the finding.
    """
    return _digest(["2", category, _plain(lines[line - 1]), _beside(lines, line)])


def former_fingerprint(lines: Sequence[str], *, line: int, category: Category) -> str:
    """Return the name that a finding had in files of before: of its first line and of those that it is indented below."""
    parents = list(_above(lines, line))[:MOST_PARENTS]
    return _digest(["1", category, *parents, _plain(lines[line - 1])])


def numbered(name: str, ordinal: int) -> str:
    """Return the fingerprint of one of several findings with the same name: the first, 0, keeps the name."""
    return _digest([name, str(ordinal)]) if ordinal else name


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _beside(lines: Sequence[str], line: int) -> str:
    """Return the line that tells this place from others with the same words; empty when there is none."""
    around = _paragraph(lines, line)
    own = _plain(lines[line - 1])
    telling = [text for text in around.lines if text != own and _tells(text)]
    if telling:
        return max(telling, key=lambda text: (len(text), text))
    return OWN_NAME.sub("", around.headings[-1], count=1) if around.headings else ""


class _Paragraph(Value, frozen=True):
    """The lines around one, without a blank line between, and not beyond its function."""

    lines: list[str] = msgspec.field(default_factory=list[str])
    headings: list[str] = msgspec.field(default_factory=list[str])
    """Those that it is indented below, the nearest first."""


def _paragraph(lines: Sequence[str], line: int) -> _Paragraph:
    found = _Paragraph()
    depth = least = _depth(lines[line - 1])
    for text in reversed(lines[max(0, line - 1 - AROUND) : line - 1]):
        if not text.strip():
            break
        if _depth(text) >= least:
            found.lines.append(_plain(text))
            continue
        least = _depth(text)
        if _tells(_plain(text)):
            found.headings.append(_plain(text))
        if least == 0:
            break
    for text in lines[line : line + AROUND]:
        if not text.strip() or _depth(text) == 0 < depth:
            break
        found.lines.append(_plain(text))
    return found


def _tells(text: str) -> bool:
    return sum(sign.isalnum() for sign in text) >= LEAST_SIGNS and COMMENT.match(text) is None


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
