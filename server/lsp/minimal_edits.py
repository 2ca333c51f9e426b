"""The smallest sensible text edits that turn one text into another; pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

STEP_BUDGET: Final = 1_000_000
"""Steps that the search may take, shared out by size; a stretch that needs more is replaced as a whole."""
LEAST_BUDGET: Final = 4096
"""What even a short stretch gets."""
_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Splice:
    """Puts `new_text` in the place of a part of the old text; all offsets refer to the old text."""

    start: int
    end: int
    new_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Lines of one list that stand in the place of lines of another: half-open ranges of line numbers, from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def minimal_edits(old: str, new: str) -> list[Splice]:
    r"""Give the edits that make `new` out of `old`, in order, without overlap.

    Lines that both have are left alone, and within changed lines the common beginning and end, so that cursors, marks
    and undo stay where they are. No edit begins or ends between `\r` and `\n`, nor behind the last line end if it
    can be helped: Neovim 0.11 puts an empty line after what it inserts there. The time is bounded.
    """
    if old == new:
        return []
    found: list[Splice] = []
    old_lines, new_lines = lines_of(old), lines_of(new)
    old_at, new_at = _starts(old_lines), _starts(new_lines)
    for hunk in line_hunks(old_lines, new_lines):
        rows = hunk.old_end - hunk.old_start
        if rows == hunk.new_end - hunk.new_start:
            pairs = [(hunk.old_start + row, hunk.new_start + row, 1) for row in range(rows)]
        else:
            pairs = [(hunk.old_start, hunk.new_start, 0)]
        for old_row, new_row, one in pairs:
            refined = _refined(
                old,
                new,
                (old_at[old_row], old_at[old_row + 1 if one else hunk.old_end]),
                (new_at[new_row], new_at[new_row + 1 if one else hunk.new_end]),
            )
            found.extend(refined)
    return _merged(_drawn_in(old, _merged(found)))


def line_hunks(old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    """Say which lines differ: few and small hunks, in order, never two that touch."""
    names: dict[str, int] = {}
    a = [names.setdefault(line, len(names)) for line in old]
    b = [names.setdefault(line, len(names)) for line in new]
    head = _common_head(a, b)
    tail = _common_tail(a, b, limit=min(len(a), len(b)) - head)
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    same: list[tuple[int, int]] = []
    gap_a = gap_b = 0
    for anchor_a, anchor_b in chain(_anchors(a, b), [(len(a), len(b))]):
        share = (anchor_a - gap_a + anchor_b - gap_b) / max(1, len(a) + len(b))
        budget = max(LEAST_BUDGET, int(STEP_BUDGET * share))
        found = _matches(a[gap_a:anchor_a], b[gap_b:anchor_b], budget=budget)
        same.extend((gap_a + at_a, gap_b + at_b) for at_a, at_b in found)
        same.append((anchor_a, anchor_b))
        gap_a, gap_b = anchor_a + 1, anchor_b + 1
    return [
        Hunk(
            old_start=head + last_a + 1,
            old_end=head + next_a,
            new_start=head + last_b + 1,
            new_end=head + next_b,
        )
        for (last_a, last_b), (next_a, next_b) in pairwise([(-1, -1), *same])
        if (last_a + 1, last_b + 1) != (next_a, next_b)
    ]


def lines_of(text: str) -> list[str]:
    r"""Cut a text into lines with their ends; `\r\n` is one end."""
    return text.splitlines(keepends=True)


def _starts(lines: Sequence[str]) -> list[int]:
    starts, at = [0], 0
    for line in lines:
        at += len(line)
        starts.append(at)
    return starts


def _anchors(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]]:
    """Match the lines that occur once in each, as long as their order is the same: they cut the work in pieces."""
    count_a, count_b = Counter(a), Counter(b)
    place = {line: at for at, line in enumerate(b) if count_b[line] == 1}
    pairs = [(at, place[line]) for at, line in enumerate(a) if count_a[line] == 1 and line in place]
    # Longest increasing run of the second places, by patience.
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, at_b) in enumerate(pairs):
        pile = bisect_left(tops, at_b)
        before.append(ends[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(at_b)
            ends.append(index)
        else:
            tops[pile], ends[pile] = at_b, index
    chosen: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]


def _matches(a: Sequence[int], b: Sequence[int], *, budget: int) -> Iterator[tuple[int, int]]:
    """Match lines so that as few as possible are left over; only the ends when that would take too long."""
    head = _common_head(a, b)
    tail = _common_tail(a, b, limit=min(len(a), len(b)) - head)
    yield from ((at, at) for at in range(head))
    for at_a, at_b in _shortest(a[head : len(a) - tail], b[head : len(b) - tail], budget=budget):
        yield head + at_a, head + at_b
    yield from ((len(a) - left, len(b) - left) for left in range(tail, 0, -1))


def _shortest(a: Sequence[int], b: Sequence[int], *, budget: int) -> list[tuple[int, int]]:
    """Find the common lines on a shortest way from `a` to `b` (Myers 1986); none when the budget is used up."""
    if not a or not b:
        return []
    reach = {1: 0}
    trail: list[dict[int, int]] = []
    for cost in range(len(a) + len(b) + 1):
        trail.append(dict(reach))
        for way in range(-cost, cost + 1, 2):
            goes_down = way == -cost or (way != cost and reach[way - 1] < reach[way + 1])
            x = reach[way + 1] if goes_down else reach[way - 1] + 1
            begun = x
            while x < len(a) and 0 <= x - way < len(b) and a[x] == b[x - way]:
                x += 1
            reach[way] = x
            budget -= 1 + x - begun
            if x >= len(a) and x - way >= len(b):
                return _walked_back(trail, len(a), len(b))
        # What is kept to find the way back counts too.
        budget -= 2 * cost
        if budget < 0:
            return []
    return []


def _walked_back(trail: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    same: list[tuple[int, int]] = []
    for cost in range(len(trail) - 1, -1, -1):
        reach, way = trail[cost], x - y
        goes_down = way == -cost or (way != cost and reach[way - 1] < reach[way + 1])
        last_way = way + 1 if goes_down else way - 1
        last_x = reach[last_way]
        last_y = last_x - last_way
        while x > max(last_x, 0) and y > max(last_y, 0):
            x, y = x - 1, y - 1
            same.append((x, y))
        x, y = last_x, last_y
    return same[::-1]


def _refined(
    old: str, new: str, old_part: tuple[int, int], new_part: tuple[int, int]
) -> Iterator[Splice]:
    """Leave out what two stretches have in common at their beginning and end."""
    a, b = old[slice(*old_part)], new[slice(*new_part)]
    if a == b:
        return
    head = _common_head(a, b)
    # A line end is one thing: to make "\r\n" of "\n" means to replace it.
    while head and (_is_inside_end(a, head) or _is_inside_end(b, head)):
        head -= 1
    tail = _common_tail(a, b, limit=min(len(a), len(b)) - head)
    while tail and (_is_inside_end(a, len(a) - tail) or _is_inside_end(b, len(b) - tail)):
        tail -= 1
    start = old_part[0]
    yield Splice(start=start + head, end=start + len(a) - tail, new_text=b[head : len(b) - tail])


def _is_inside_end(text: str, at: int) -> bool:
    return text.startswith("\r\n", at - 1)


def _merged(found: Sequence[Splice]) -> list[Splice]:
    """Join edits that touch: some editors take two edits at one place for a conflict."""
    merged: list[Splice] = []
    for one in found:
        if merged and merged[-1].end == one.start:
            last = merged.pop()
            joined = last.new_text + one.new_text
            merged.append(Splice(start=last.start, end=one.end, new_text=joined))
        else:
            merged.append(one)
    return merged


def _drawn_in(old: str, found: Sequence[Splice]) -> Sequence[Splice]:
    """Move an edit at the very end of a text before its last line end, where that comes to the same."""
    end = next((end for end in ("\r\n", "\n", "\r") if old.endswith(end)), "")
    if not found or not end or found[-1].end < len(old):
        return found
    last = found[-1]
    start = last.start - len(end)
    moved = old[max(0, start) : last.start] + last.new_text
    if start < 0 or not moved.endswith(end) or _is_inside_end(old, start):
        return found
    kept = moved.removesuffix(end)
    if _is_inside_end(kept + end, len(kept)):
        return found
    return [*found[:-1], Splice(start=start, end=last.end - len(end), new_text=kept)]


def _common_head(a: Sequence[object], b: Sequence[object]) -> int:
    """Count the elements with which both begin; compares large pieces, which is fast for text."""
    limit, at, size = min(len(a), len(b)), 0, _CHUNK
    while at < limit and size:
        end = min(at + size, limit)
        if a[at:end] == b[at:end]:
            at = end
        else:
            size //= 2
    return at


def _common_tail(a: Sequence[object], b: Sequence[object], *, limit: int) -> int:
    """Count the elements with which both end, at most `limit`."""
    at, size = 0, _CHUNK
    while at < limit and size:
        end = min(at + size, limit)
        if a[len(a) - end : len(a) - at] == b[len(b) - end : len(b) - at]:
            at = end
        else:
            size //= 2
    return at
