"""Detection of text moved from one file into another, so that reverting only one of them does not lose it; pure.

Moving a function from one file to another changes both. If the user or another process edits the first file
afterwards, it is not reverted, and reverting the second file alone would remove the function from the workspace.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from agent_core.kernel.values import Value

_TOKENS: Final = re.compile(r"[A-Za-z0-9_]{3,}|[^\x00-\x7f]")
"""Words of some length, and each character of scripts that put no blanks between words."""


class Anchor(Value, frozen=True, kw_only=True):
    """Files that are left as they are."""

    names: str
    taken: frozenset[str]
    """Words that they held once and do not hold now."""


class Candidate(Value, frozen=True, kw_only=True):
    """Files that would be taken back."""

    key: int
    names: str
    held: frozenset[str]
    """Words that they have held meanwhile and do not hold now."""
    lost: frozenset[str]
    """Words that they hold now and would not hold then."""


def tokens_of(text: str) -> frozenset[str]:
    """Return the words of a text, however they are written."""
    return frozenset(found[0].casefold() for found in _TOKENS.finditer(text))


def files_with_moved_text(
    going: Iterable[Candidate], staying: Iterable[Anchor]
) -> Iterator[tuple[int, str]]:
    """Yield the key of each file that must stay too, with the reason. Such a file can cause further files to stay."""
    left, anchors = list(going), list(staying)
    while anchors:
        anchor = anchors.pop()
        for one in [one for one in left if one.lost & anchor.taken]:
            left.remove(one)
            yield (
                one.key,
                f"{one.names} may hold what was moved there from {anchor.names}, which stays",
            )
            anchors.append(Anchor(names=one.names, taken=one.held))
