"""The smallest sensible text edits that turn one text into another; pure."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from agent_core.kernel.values import Value

STEP_BUDGET: Final = 1_000_000
"""Steps that the search may take, shared out by size; a stretch that needs more is replaced as a whole."""
LEAST_BUDGET: Final = 4096
"""Steps that a short stretch has at least."""
FEW_CHANGES: Final = 48
"""So few lines that come or go are looked for first, which takes a large text hardly any time."""
FEW_LOOKS: Final = 8
"""How often each line may be looked at for that."""
_CHUNK: Final = 1 << 16
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


class TextEdit(Value, frozen=True, kw_only=True):
    """Replacement of a part of the old text by `new_text`; all offsets refer to the old text."""

    start: int
    end: int
    new_text: str


class LineHunk(Value, frozen=True, kw_only=True):
    """Lines of one list that stand in the place of lines of another: half-open ranges of line numbers, from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def minimal_edits(old: str, new: str) -> list[TextEdit]:
    r"""Return the edits that make `new` out of `old`, in order, without overlap.

    Lines that both have are left alone, and within changed lines the common beginning and end, so that cursors, marks
    and undo stay where they are. No edit begins or ends between `\r` and `\n`, nor behind the last line end if it
    can be helped: Neovim 0.11 puts an empty line after what it inserts there. The time is bounded.
    """
    found = [refined for whole in line_edits(old, new) for refined in within_lines(old, whole)]
    return _drawn_in(old, _merged(found))


def line_edits(old: str, new: str) -> list[TextEdit]:
    """Return the lines that differ as edits of whole lines, in order, never two that touch.

    The common beginning and end of both texts are not split into lines: that spares most of a large text with a small
    change.
    """
    if old == new:
        return []
    head, tail = shared_ends(old, new)
    old_lines = lines_of(old[head : len(old) - tail])
    new_lines = lines_of(new[head : len(new) - tail])
    old_at, new_at = _starts(old_lines), _starts(new_lines)
    return [
        TextEdit(
            start=head + old_at[hunk.old_start],
            end=head + old_at[hunk.old_end],
            new_text=new[head + new_at[hunk.new_start] : head + new_at[hunk.new_end]],
        )
        for hunk in line_hunks(old_lines, new_lines)
    ]


def within_lines(old: str, whole: TextEdit) -> Iterator[TextEdit]:
    """Leave out of an edit of whole lines what they keep: row by row where their number stays, else at both ends."""
    removed, brought = lines_of(old[whole.start : whole.end]), lines_of(whole.new_text)
    if len(removed) != len(brought):
        removed, brought = [old[whole.start : whole.end]], [whole.new_text]
    at = whole.start
    for before, after in zip(removed, brought, strict=True):
        yield from _refined(before, after, at=at)
        at += len(before)


def line_hunks(old: Sequence[str], new: Sequence[str]) -> list[LineHunk]:
    """Return which lines differ: few and small hunks, in order, never two that touch."""
    head = common_head(old, new)
    tail = common_tail(old, new, limit=min(len(old), len(new)) - head)
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    runs = _few_runs(a, b)
    if runs is None:
        names: dict[str, int] = {}
        runs = _all_runs(
            [names.setdefault(line, len(names)) for line in a],
            [names.setdefault(line, len(names)) for line in b],
        )
    hunks: list[LineHunk] = []
    done_a = done_b = 0
    for run_a, run_b, size in [*runs, (len(a), len(b), 0)]:
        if (done_a, done_b) != (run_a, run_b):
            hunks.append(
                LineHunk(
                    old_start=head + done_a,
                    old_end=head + run_a,
                    new_start=head + done_b,
                    new_end=head + run_b,
                )
            )
        done_a, done_b = run_a + size, run_b + size
    return hunks


def _few_runs(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int]] | None:
    """Find what both have, as runs, when little differs: whole runs are compared at once. None when too much does."""
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    room = FEW_LOOKS * (len(a) + len(b)) + LEAST_BUDGET
    for cost in range(FEW_CHANGES + 1):
        trail.append(dict(furthest))
        for way in range(-cost, cost + 1, 2):
            x, _ = _stepped(furthest, way, cost)
            y = x - way
            if x <= len(a) and 0 <= y <= len(b):
                size = _run(a, x, b, y)
                room -= size
                x += size
            furthest[way] = x
            if x >= len(a) and x - way >= len(b):
                return _runs_back(trail, len(a), len(b))
        if room < 0:
            return None
    return None


def _stepped(furthest: dict[int, int], way: int, cost: int) -> tuple[int, int]:
    """Return where a way goes on with one more change, and from which way it comes (Myers 1986)."""
    goes_down = way == -cost or (way != cost and furthest[way - 1] < furthest[way + 1])
    return (furthest[way + 1], way + 1) if goes_down else (furthest[way - 1] + 1, way - 1)


def _run(a: Sequence[str], x: int, b: Sequence[str], y: int) -> int:
    """Count how many lines are the same from two places on."""
    limit, at, size = min(len(a) - x, len(b) - y), 0, 1
    grows = True
    while at < limit and size:
        end = min(at + size, limit)
        if a[x + at : x + end] == b[y + at : y + end]:
            at = end
            size = size * 2 if grows else size
        else:
            grows = False
            size //= 2
    return at


def _runs_back(trail: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int, int]]:
    runs: list[tuple[int, int, int]] = []
    for cost in range(len(trail) - 1, -1, -1):
        begun, last_way = _stepped(trail[cost], x - y, cost)
        begun = max(begun, 0)
        if x > begun:
            runs.append((begun, begun - (x - y), x - begun))
        x = trail[cost][last_way]
        y = x - last_way
    return runs[::-1]


def _all_runs(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int, int]]:
    """Find what both have, cut at the lines that occur once in each; the time is shared out."""
    same: list[tuple[int, int, int]] = []
    gap_a = gap_b = 0
    for anchor_a, anchor_b in chain(_anchors(a, b), [(len(a), len(b))]):
        share = (anchor_a - gap_a + anchor_b - gap_b) / max(1, len(a) + len(b))
        budget = max(LEAST_BUDGET, int(STEP_BUDGET * share))
        found = _matches(a[gap_a:anchor_a], b[gap_b:anchor_b], budget=budget)
        same.extend((gap_a + at_a, gap_b + at_b, 1) for at_a, at_b in found)
        if anchor_a < len(a) and anchor_b < len(b):
            same.append((anchor_a, anchor_b, 1))
        gap_a, gap_b = anchor_a + 1, anchor_b + 1
    return same


def lines_of(text: str) -> list[str]:
    r"""Cut a text into lines with their ends: `\n`, `\r\n` and `\r`, as editors count; anything else is data."""
    lines = text.splitlines(keepends=True)
    # Python also cuts at form feeds, U+2028 and the like; the count tells without a search whether it did.
    return lines if len(lines) == _line_count(text) else _LINE.findall(text)


def line_number0(text: str, offset: int) -> int:
    """Count the lines before a place where a line begins, as editors count."""
    ends = text.count("\n", 0, offset)
    if returns := text.count("\r", 0, offset):
        ends += returns - text.count("\r\n", 0, offset)
    return ends


def _line_count(text: str) -> int:
    return line_number0(text, len(text)) + (text != "" and not text.endswith(("\n", "\r")))


def shared_ends(*texts: str) -> tuple[int, int]:
    """Count the characters of the whole lines with which all texts begin, and of those with which all end."""
    first, *others = texts
    room = min(map(len, texts))
    head = min(common_head(first, other) for other in others)
    while head and not all(_is_line_start(text, head) for text in texts):
        head = max(first.rfind("\n", 0, head - 1), first.rfind("\r", 0, head - 1)) + 1
    tail = min(common_tail(first, other, limit=room - head) for other in others)
    while tail and not all(_is_line_start(text, len(text) - tail) for text in texts):
        at = len(first) - tail
        ends = [found for end in "\r\n" if (found := first.find(end, at)) >= 0]
        tail = len(first) - min(ends) - 1 if ends else 0
    return head, tail


def _is_line_start(text: str, at: int) -> bool:
    return at == 0 or (text[at - 1] in "\r\n" and not _is_inside_end(text, at))


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
    head = common_head(a, b)
    tail = common_tail(a, b, limit=min(len(a), len(b)) - head)
    yield from ((at, at) for at in range(head))
    for at_a, at_b in _shortest(a[head : len(a) - tail], b[head : len(b) - tail], budget=budget):
        yield head + at_a, head + at_b
    yield from ((len(a) - left, len(b) - left) for left in range(tail, 0, -1))


def _shortest(a: Sequence[int], b: Sequence[int], *, budget: int) -> list[tuple[int, int]]:
    """Find the common lines on a shortest way from `a` to `b` (Myers 1986); none when the budget is used up."""
    if not a or not b:
        return []
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for cost in range(len(a) + len(b) + 1):
        trail.append(dict(furthest))
        for way in range(-cost, cost + 1, 2):
            x, _ = _stepped(furthest, way, cost)
            begun = x
            while x < len(a) and 0 <= x - way < len(b) and a[x] == b[x - way]:
                x += 1
            furthest[way] = x
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
        _, last_way = _stepped(trail[cost], x - y, cost)
        last_x = trail[cost][last_way]
        last_y = last_x - last_way
        while x > max(last_x, 0) and y > max(last_y, 0):
            x, y = x - 1, y - 1
            same.append((x, y))
        x, y = last_x, last_y
    return same[::-1]


def _refined(a: str, b: str, *, at: int) -> Iterator[TextEdit]:
    """Leave out what two stretches have in common at their beginning and end."""
    if a == b:
        return
    head = common_head(a, b)
    # A line end is one thing: to make "\r\n" of "\n" means to replace it.
    while head and (_is_inside_end(a, head) or _is_inside_end(b, head)):
        head -= 1
    tail = common_tail(a, b, limit=min(len(a), len(b)) - head)
    while tail and (_is_inside_end(a, len(a) - tail) or _is_inside_end(b, len(b) - tail)):
        tail -= 1
    yield TextEdit(start=at + head, end=at + len(a) - tail, new_text=b[head : len(b) - tail])


def _is_inside_end(text: str, at: int) -> bool:
    return text.startswith("\r\n", at - 1)


def _merged(found: Sequence[TextEdit]) -> list[TextEdit]:
    """Join edits that touch: some editors take two edits at one place for a conflict."""
    merged: list[TextEdit] = []
    for one in found:
        if merged and merged[-1].end == one.start:
            last = merged.pop()
            joined = last.new_text + one.new_text
            merged.append(TextEdit(start=last.start, end=one.end, new_text=joined))
        else:
            merged.append(one)
    return merged


def _drawn_in(old: str, found: list[TextEdit]) -> list[TextEdit]:
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
    return [*found[:-1], TextEdit(start=start, end=last.end - len(end), new_text=kept)]


def common_head(a: Sequence[object], b: Sequence[object]) -> int:
    """Count the elements with which both begin; compares large pieces, which is fast for text."""
    limit, at, size = min(len(a), len(b)), 0, _CHUNK
    while at < limit and size:
        end = min(at + size, limit)
        if a[at:end] == b[at:end]:
            at = end
        else:
            size //= 2
    return at


def common_tail(a: Sequence[object], b: Sequence[object], *, limit: int) -> int:
    """Count the elements with which both end, at most `limit`."""
    at, size = 0, _CHUNK
    while at < limit and size:
        end = min(at + size, limit)
        if a[len(a) - end : len(a) - at] == b[len(b) - end : len(b) - at]:
            at = end
        else:
            size //= 2
    return at
