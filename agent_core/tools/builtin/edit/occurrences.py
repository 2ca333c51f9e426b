"""Counts how often a text occurs in another and says where it does first: pure."""

from agent_core.kernel.values import Value

COUNT_LIMIT = 10_000
"""More occurrences than this are not counted."""
CANDIDATE_LIMIT = 4_000
"""At more places than this it is cheaper to take the blanks off every line."""
BLANKS = " \t\v\f\x1c\x1d\x1e\x1f"
"""Blanks that are stripped from the ends of lines, as far as they are ASCII."""


class Occurrences(Value, frozen=True, kw_only=True):
    """How often a text occurs, overlapping or not."""

    count: int
    """At most one more than the limit."""
    place: tuple[int, int] | None
    """Where the first one begins and ends; None: nowhere, or at no border between characters."""


NOWHERE = Occurrences(count=0, place=None)


def occurrences(text: str, wanted: str) -> Occurrences:
    """Find a text as it is, also where it overlaps itself."""
    first = at = text.find(wanted)
    if first < 0 or not wanted:
        return NOWHERE
    count = 0
    while at >= 0 and count <= COUNT_LIMIT:
        count += 1
        at = text.find(wanted, at + 1)
    return Occurrences(count=count, place=(first, first + len(wanted)))


def in_lines(text: str, wanted: str) -> Occurrences | None:
    """Find a text as if no line of the other one had blanks at its end.

    None: that would take too long this way.

    Args:
        text: ASCII with LF endings.
        wanted: The same, without blanks at the ends of its lines.
    """
    if "\n" not in wanted:
        return occurrences(
            text, wanted
        )  # it does not end in a blank, so no blank at an end is in it
    lines = wanted.split("\n")
    rarest = max(range(len(lines)), key=lambda index: len(lines[index]))
    anchor = lines[rarest]
    if not anchor:
        return None
    count, place = 0, None
    at = text.find(anchor)
    for _ in range(CANDIDATE_LIMIT):
        if at < 0:
            return Occurrences(count=count, place=place)
        start = _before(text, at, lines[:rarest])
        end = _after(text, at + len(anchor), lines[rarest + 1 :])
        if start is not None and end is not None:
            count += 1
            place = place or (start, end)
        at = text.find(anchor, at + 1)
    return None


def _before(text: str, end: int, lines: list[str]) -> int | None:
    """Return where lines begin that must stand before an offset; None: they do not."""
    for line in reversed(lines):
        if end == 0 or text[end - 1] != "\n":
            return None
        end -= 1
        while end > 0 and text[end - 1] in BLANKS:
            end -= 1
        if not text.endswith(line, 0, end):
            return None
        end -= len(line)
    return end


def _after(text: str, start: int, lines: list[str]) -> int | None:
    """Return where lines end that must stand after an offset; None: they do not."""
    for line in lines:
        while start < len(text) and text[start] in BLANKS:
            start += 1
        if start == len(text) or text[start] != "\n":
            return None
        start += 1
        if not text.startswith(line, start):
            return None
        start += len(line)
    return start
