"""Two texts as a unified diff; pure, and bounded in time however much they differ."""

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

from agent_core.workspace.edits.minimal import Hunk, line_hunks

AROUND = 3
"""How many lines are shown around a change."""
NOWHERE = "/dev/null"


def unified(name: str, before: str | None, after: str | None) -> str:
    """Give the diff of a file; empty when nothing differs.

    Args:
        name: Of the file, relative, with slashes.
        before: None: there was no file.
        after: None: there is no file.
    """
    if before == after:
        return ""
    old, new = _lines(before or ""), _lines(after or "")
    head = (
        f"--- {NOWHERE if before is None else f'a/{name}'}\n"
        f"+++ {NOWHERE if after is None else f'b/{name}'}\n"
    )
    return head + "".join(
        line for near in _near(line_hunks(old, new)) for line in _shown(near, old, new)
    )


def _near(hunks: Sequence[Hunk]) -> Iterator[Sequence[Hunk]]:
    """Put hunks together whose surroundings touch."""
    group: list[Hunk] = []
    for one in hunks:
        if group and one.old_start - group[-1].old_end > 2 * AROUND:
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _shown(hunks: Sequence[Hunk], old: Sequence[str], new: Sequence[str]) -> Iterable[str]:
    start = max(0, hunks[0].old_start - AROUND)
    end = min(len(old), hunks[-1].old_end + AROUND)
    new_start = hunks[0].new_start - (hunks[0].old_start - start)
    new_end = hunks[-1].new_end + (end - hunks[-1].old_end)
    yield f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@\n"
    at = start
    for one in hunks:
        yield from (_line(" ", line) for line in old[at : one.old_start])
        yield from (_line("-", line) for line in old[one.old_start : one.old_end])
        yield from (_line("+", line) for line in new[one.new_start : one.new_end])
        at = one.old_end
    yield from (_line(" ", line) for line in old[at:end])


def _range(start: int, end: int) -> str:
    # Of no lines the line before them is named.
    return f"{start + 1 if end > start else start},{end - start}"


def _line(mark: str, line: str) -> str:
    ended = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
    return f"{mark}{ended}"


def _lines(text: str) -> list[str]:
    """Split at line feeds alone, as patches do."""
    return list(StringIO(text, newline="\n"))
