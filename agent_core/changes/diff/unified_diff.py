"""Two texts as a unified diff; pure, and bounded in time however much they differ."""

from collections.abc import Iterator, Sequence
from io import StringIO

from agent_core.workspace.diff.minimal_edits import LineHunk, line_hunks

AROUND = 3
"""How many lines are shown around a change."""
NOWHERE = "/dev/null"


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
    before, after = _lines(old), _lines(new)
    for group in _groups(line_hunks(before, after)):
        first, last = group[0], group[-1]
        old_at, new_at = max(0, first.old_start - AROUND), max(0, first.new_start - AROUND)
        old_end = min(len(before), last.old_end + AROUND)
        new_end = min(len(after), last.new_end + AROUND)
        yield f"@@ -{_span(old_at, old_end)} +{_span(new_at, new_end)} @@\n"
        at = old_at
        for one in group:
            yield from (_row(" ", line) for line in before[at : one.old_start])
            yield from (_row("-", line) for line in before[one.old_start : one.old_end])
            yield from (_row("+", line) for line in after[one.new_start : one.new_end])
            at = one.old_end
        yield from (_row(" ", line) for line in before[at:old_end])


def _groups(hunks: Sequence[LineHunk]) -> Iterator[Sequence[LineHunk]]:
    """Group hunks whose context lines would overlap or touch."""
    group: list[LineHunk] = []
    for one in hunks:
        if group and one.old_start - group[-1].old_end > 2 * AROUND:
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _span(start: int, end: int) -> str:
    # Of no lines the line before them is named.
    return f"{start + (end > start)},{end - start}"


def _row(mark: str, line: str) -> str:
    if line.endswith("\n"):
        return f"{mark}{line}"
    return f"{mark}{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Cut at line feeds alone, as git does."""
    return list(StringIO(text, newline="\n"))
