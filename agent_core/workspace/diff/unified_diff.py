"""Changed lines with the lines around them, and their notation as a unified diff; pure, and bounded in time."""

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

import msgspec
from msgspec import Struct

from agent_core.kernel.values import Value

CONTEXT_LINES = 3
"""How many lines are shown around a change."""
NOWHERE = "/dev/null"


class LineChange(Value, frozen=True, kw_only=True):
    """Replacement of whole lines by whole lines."""

    start: int
    """Offset in the old text, at the beginning of a line."""
    removed: Sequence[str]
    """With their newlines."""
    added: Sequence[str]

    @property
    def end(self) -> int:
        """Offset where the removed lines end."""
        return self.start + sum(map(len, self.removed))


class DiffHunk(Struct, kw_only=True):
    """Changes near one another, with the lines around them."""

    old_line: int
    """Number of its first line in the old text, from 1."""
    new_line: int
    rows: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """A sign (`-`, `+` or a space) and a line with its newline."""
    is_last: bool = False
    """Nothing of the text comes after it."""

    def count(self, signs: str) -> int:
        """Count the rows with one of some signs."""
        return sum(sign in signs for sign, _ in self.rows)


def unified(name: str, before: str | None, after: str | None) -> str:
    """Return the diff of a file; empty when nothing differs.

    Args:
        name: Of the file, relative, with slashes.
        before: None: there was no file.
        after: None: there is no file.
    """
    if before == after:
        return ""
    head = (
        f"--- {NOWHERE if before is None else f'a/{name}'}\n"
        f"+++ {NOWHERE if after is None else f'b/{name}'}\n"
    )
    return head + "".join(text_rows(before or "", after or ""))


def text_rows(old: str, new: str) -> Iterator[str]:
    """Return the rows of a unified diff, without its head."""
    before, after = split_lines(old), split_lines(new)
    return unified_rows(hunks_around(old, _changes(before, after), context=CONTEXT_LINES))


def unified_rows(hunks: Iterable[DiffHunk]) -> Iterator[str]:
    """Write hunks as rows of a unified diff."""
    for hunk in hunks:
        old, new = hunk.count(" -"), hunk.count(" +")
        # A side without lines is numbered by the line before it.
        old_line, new_line = hunk.old_line - (old == 0), hunk.new_line - (new == 0)
        yield f"@@ -{old_line},{old} +{new_line},{new} @@\n"
        for sign, line in hunk.rows:
            ending = "" if line.endswith("\n") else "\n\\ No newline at end of file\n"
            yield f"{sign}{line}{ending}"


def hunks_around(text: str, changes: Iterable[LineChange], *, context: int) -> Iterator[DiffHunk]:
    """Add the lines around changes; changes whose context lines would overlap or touch are one hunk.

    Only the changed regions of the text are split into lines.

    Args:
        text: The old text.
        changes: In order, without overlap.
        context: How many unchanged lines are shown on each side.
    """
    hunk: DiffHunk | None = None
    done = line = shift = 0  # the end of the last change, its line from 0, lines gained so far
    for change in changes:
        between = text.count("\n", done, change.start)
        line += between
        if hunk is not None and between <= 2 * context:
            hunk.rows += [(" ", same) for same in split_lines(text[done : change.start])]
        else:
            if hunk is not None:
                hunk.rows += [(" ", same) for same in _head(text, done, lines=context)]
                yield hunk
            before = _before(text, change.start, lines=min(context, between))
            hunk = DiffHunk(
                old_line=line - len(before) + 1, new_line=line - len(before) + shift + 1
            )
            hunk.rows += [(" ", same) for same in before]
        hunk.rows += [("-", old) for old in change.removed] + [("+", new) for new in change.added]
        line += len(change.removed)
        shift += len(change.added) - len(change.removed)
        done = change.end
    if hunk is not None:
        after = _head(text, done, lines=context + 1)
        hunk.rows += [(" ", same) for same in after[:context]]
        hunk.is_last = len(after) <= context
        yield hunk


def split_lines(text: str) -> list[str]:
    """Split after line feeds alone, as git does."""
    return list(StringIO(text, newline="\n"))


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[LineChange]:
    from agent_core.workspace.diff.minimal_edits import line_hunks  # noqa: PLC0415 - at first use

    offset = line = 0
    for hunk in line_hunks(before, after):
        offset += sum(map(len, before[line : hunk.old_start]))
        line = hunk.old_start
        removed = before[hunk.old_start : hunk.old_end]
        yield LineChange(start=offset, removed=removed, added=after[hunk.new_start : hunk.new_end])


def _head(text: str, start: int, *, lines: int) -> list[str]:
    """Return the lines from an offset on, at most some."""
    stop = start
    for _ in range(lines):
        newline = text.find("\n", stop)
        if newline < 0:
            return split_lines(text[start:])
        stop = newline + 1
    return split_lines(text[start:stop])


def _before(text: str, stop: int, *, lines: int) -> list[str]:
    """Return some lines up to an offset that begins a line."""
    start = stop
    for _ in range(lines):
        start = text.rfind("\n", 0, start - 1) + 1
    return split_lines(text[start:stop])
