"""Diff of an edit for people, and its patch. Pure: reads only the changed regions."""

import difflib
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from agent_core.kernel.truncation import DEFAULT_MAX_BYTES, truncate_head
from agent_core.kernel.values import Value
from agent_core.tools.builtin.edit.match import EditSpan

CONTEXT_LINES = 4
ALIGN_LINES = 1_000
"""Up to this many lines on both sides are aligned; beyond that a region counts as replaced whole."""
DIFF_LINES = 5_000
DIFF_BYTES = 2 * DEFAULT_MAX_BYTES


class Diff(Value, frozen=True, kw_only=True):
    """A change in two notations, with its size."""

    diff: str
    """`-12 old`, `+12 new`, ` 11 same`, ` ...` where lines are left out."""
    patch: str
    """A unified diff."""
    first_changed_line: int
    """In the new text, from 1."""
    additions: int
    deletions: int
    cut: bool
    """The notations are too long to be given whole."""


class _Change(Value, frozen=True, kw_only=True):
    """Whole lines for whole lines."""

    start: int
    """Offset in the old text, at the beginning of a line."""
    removed: tuple[str, ...]
    """With their newlines."""
    added: tuple[str, ...]

    @property
    def end(self) -> int:
        return self.start + sum(len(line) for line in self.removed)


class _Hunk(Struct, kw_only=True):
    """Changes near one another, with what stands around them."""

    old_line: int
    new_line: int
    rows: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """A sign (`-`, `+` or a space) and a line with its newline."""
    is_last: bool = False
    """Nothing of the text comes after it."""

    def count(self, signs: str) -> int:
        return sum(sign in signs for sign, _ in self.rows)


def diff_of(before_lf: str, spans: Sequence[EditSpan], *, path: str) -> Diff:
    """Return the diff and the patch of a change.

    Args:
        before_lf: The old text with LF endings.
        spans: The replacements, sorted and without overlap.
        path: Path for the head of the patch, as it is shown.
    """
    changes = [change for block in _blocks(before_lf, spans) for change in _aligned(block)]
    hunks = list(_hunks(before_lf, changes))
    added, removed = (sum(hunk.count(sign) for hunk in hunks) for sign in "+-")
    shown = truncate_head("\n".join(_shown(hunks)), max_lines=DIFF_LINES, max_bytes=DIFF_BYTES)
    patch = truncate_head(_patch(hunks, path), max_lines=DIFF_LINES, max_bytes=DIFF_BYTES)
    return Diff(
        diff=shown.content,
        patch=patch.content,
        first_changed_line=_first_changed(hunks),
        additions=added,
        deletions=removed,
        cut=shown.truncated or patch.truncated,
    )


def _blocks(text: str, spans: Sequence[EditSpan]) -> Iterator[_Change]:
    """Widen spans to whole lines; those that share a line become one."""
    waiting = list(reversed(spans))
    while waiting:
        start = done = text.rfind("\n", 0, waiting[-1].start) + 1
        end = start
        new = ""
        while waiting and (end == start or waiting[-1].start < end):
            span = waiting.pop()
            new += text[done : span.start] + span.new
            done = span.end
            end = _line_end(text, done, open_line=new != "" and not new.endswith("\n"))
        new += text[done:end]
        yield _Change(start=start, removed=_lines(text[start:end]), added=_lines(new))


def _line_end(text: str, offset: int, *, open_line: bool) -> int:
    """Return where the line that holds an offset ends; the offset itself when it begins a line and none is open."""
    if text[offset - 1] == "\n" and not open_line:
        return offset
    newline = text.find("\n", offset)
    return len(text) if newline < 0 else newline + 1


def _aligned(block: _Change) -> Iterator[_Change]:
    """Remove the unchanged lines from a block, which may split it; from a large block only those at its ends."""
    old, new = block.removed, block.added
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    start = block.start + sum(len(line) for line in old[:head])
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(old), len(new)) > ALIGN_LINES:
        yield _Change(start=start, removed=old, added=new)
        return
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            offset = start + sum(len(line) for line in old[:a])
            yield _Change(start=offset, removed=old[a:b], added=new[c:d])


def _hunks(text: str, changes: Sequence[_Change]) -> Iterator[_Hunk]:
    hunk: _Hunk | None = None
    done = line = shift = 0  # the end of the last change, its line from 0, lines gained so far
    for change in changes:
        between = text.count("\n", done, change.start)
        line += between
        if hunk is not None and between <= 2 * CONTEXT_LINES:
            hunk.rows += [(" ", same) for same in _lines(text[done : change.start])]
        else:
            if hunk is not None:
                _close(hunk, _head(text, done, lines=CONTEXT_LINES), is_last=False)
                yield hunk
            before = _before(text, change.start, lines=min(CONTEXT_LINES, between))
            hunk = _Hunk(old_line=line - len(before) + 1, new_line=line - len(before) + shift + 1)
            hunk.rows += [(" ", same) for same in before]
        hunk.rows += [("-", old) for old in change.removed] + [("+", new) for new in change.added]
        line += len(change.removed)
        shift += len(change.added) - len(change.removed)
        done = change.end
    if hunk is not None:
        after = _head(text, done, lines=CONTEXT_LINES + 1)
        _close(hunk, after[:CONTEXT_LINES], is_last=len(after) <= CONTEXT_LINES)
        yield hunk


def _close(hunk: _Hunk, after: Sequence[str], *, is_last: bool) -> None:
    hunk.rows += [(" ", same) for same in after]
    hunk.is_last = is_last


def _head(text: str, start: int, *, lines: int) -> tuple[str, ...]:
    """Return the lines from an offset on, at most some."""
    stop = start
    for _ in range(lines):
        newline = text.find("\n", stop)
        if newline < 0:
            return _lines(text[start:])
        stop = newline + 1
    return _lines(text[start:stop])


def _before(text: str, stop: int, *, lines: int) -> tuple[str, ...]:
    """Return some lines up to an offset that begins a line."""
    start = stop
    for _ in range(lines):
        start = text.rfind("\n", 0, start - 1) + 1
    return _lines(text[start:stop])


def _first_changed(hunks: Sequence[_Hunk]) -> int:
    for hunk in hunks:
        line = hunk.new_line
        for sign, _ in hunk.rows:
            if sign != " ":
                return line
            line += 1
    return 1


def _shown(hunks: Sequence[_Hunk]) -> Iterator[str]:
    last = max((max(hunk.old_line, hunk.new_line) + len(hunk.rows) for hunk in hunks), default=1)
    width = len(str(last - 1))
    skipped = f" {'':>{width}} ..."
    for index, hunk in enumerate(hunks):
        if index > 0 or hunk.old_line > 1:
            yield skipped
        old, new = hunk.old_line, hunk.new_line
        for sign, text in hunk.rows:
            yield f"{sign}{new if sign == '+' else old:>{width}} {text.removesuffix(chr(10))}"
            old += sign != "+"
            new += sign != "-"
    if hunks and not hunks[-1].is_last:
        yield skipped


def _patch(hunks: Sequence[_Hunk], path: str) -> str:
    parts = [f"--- a/{path}\n+++ b/{path}\n"]
    for hunk in hunks:
        old, new = hunk.count(" -"), hunk.count(" +")
        # A side without lines is numbered by the line before it.
        old_line, new_line = hunk.old_line - (old == 0), hunk.new_line - (new == 0)
        parts.append(f"@@ -{old_line},{old} +{new_line},{new} @@\n")
        for sign, text in hunk.rows:
            newline = "" if text.endswith("\n") else "\n\\ No newline at end of file\n"
            parts.append(f"{sign}{text}{newline}")
    return "".join(parts)


def _lines(text: str) -> tuple[str, ...]:
    """Split after newlines, and there only."""
    parts = text.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return (*lines, parts[-1]) if parts[-1] else tuple(lines)
