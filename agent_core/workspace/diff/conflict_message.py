"""Text about lines that another author changed, with their numbers and present content; pure."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.diff.merge import Conflict, LineRange
from agent_core.workspace.diff.minimal_edits import line_edits, line_number0, lines_of

SHOWN_PLACES: Final = 8
SHOWN_LINES: Final = 20
"""At one place."""
SHOWN_CHARS: Final = 300
"""Of one line."""


def changes_message(before: str, now: str) -> str:
    """List the lines in which a text differs from a former one, each with its number and its text of now."""
    places: list[_Place] = []
    moved = last = number = 0
    for one in line_edits(before, now):
        start = one.start + moved
        number += line_number0(now[last:start], start - last)
        last = start
        moved += len(one.new_text) - (one.end - one.start)
        count = len(lines_of(one.new_text))
        removed = len(lines_of(before[one.start : one.end]))
        lines = LineRange(start=number, end=number + count, text=one.new_text)
        places.append(_Place(lines=lines, removed=removed))
    return "\n".join(_listed(places))


def conflict_message(conflicts: Sequence[Conflict]) -> str:
    """List what stands now where two changes conflict, each line with its number."""
    places = [_Place(lines=one.theirs, removed=one.base.end - one.base.start) for one in conflicts]
    return "\n".join(_listed(places))


class _Place(Value, frozen=True, kw_only=True):
    lines: LineRange
    removed: int
    """How many lines stood there before."""


def _listed(places: Sequence[_Place]) -> Iterator[str]:
    for place in places[:SHOWN_PLACES]:
        yield from _shown(place)
    if (more := len(places) - SHOWN_PLACES) > 0:
        yield f"… and at {more} more {'place' if more == 1 else 'places'}; read the file again to see them."


def _shown(place: _Place) -> Iterator[str]:
    lines = place.lines
    if lines.start == lines.end:
        gone = "a line was" if place.removed == 1 else f"{place.removed} lines were"
        where = f"after line {lines.start}" if lines.start else "at the beginning"
        yield f"({where} {gone} deleted)"
        return
    for at, line in enumerate(islice(lines_of(lines.text), SHOWN_LINES)):
        content = line.rstrip("\r\n")
        cut = "…" if len(content) > SHOWN_CHARS else ""
        yield f"{lines.start + at + 1}: {content[:SHOWN_CHARS]}{cut}"
    if lines.end - lines.start > SHOWN_LINES:
        yield f"… up to line {lines.end}; read the file again to see the rest."
