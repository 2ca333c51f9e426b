"""Outcome of an edit, read from the editor's text and its answer; pure."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from agent_core.kernel.errors import EditRefused, EditUnverified, StaleText, WorkspaceError
from agent_core.kernel.values import Value
from agent_core.workspace.diff.minimal_edits import (
    LineHunk,
    TextEdit,
    line_hunks,
    line_number0,
    lines_of,
    shared_ends,
    within_lines,
)

SHOWN_PLACES: Final = 8
FEW_CHARS: Final = 16
"""Of so few, each single one is looked for."""
PIECE_CHARS: Final = 4
MOST_PIECES: Final = 1_000
AGAIN: Final = "Read it again before you edit it."
_STALE: Final = re.compile(
    r"version|\bstale|\bchanged|\bmodified|newer|out.?dated|out of date", re.IGNORECASE
)


class ApplyResponse(Value, frozen=True, kw_only=True):
    """Answer of the editor to an edit."""

    applied: bool | None
    """None: it said nothing that counts."""
    reason: str = ""
    """Why not, in the editor's words or ours; may be empty."""

    @property
    def is_about_versions(self) -> bool:
        """Whether it was refused for another version of the document, as far as can be told; not because somebody said no."""
        return self.applied is False and (not self.reason or bool(_STALE.search(self.reason)))


class EditMatch(Value, frozen=True, kw_only=True):
    """How much of an edit is in a text."""

    kind: Literal["exact", "alike", "with others", "partly", "none", "unchanged"]
    """`alike` differs in line ends or the final newline alone; `with others` has other changes elsewhere."""
    applied: tuple[LineHunk, ...] = ()
    missing: tuple[LineHunk, ...] = ()
    """Where nothing of it is in the text."""
    mixed: tuple[LineHunk, ...] = ()
    """Where somebody else changed the text too, and something of the edit may be in it."""

    @property
    def is_whole(self) -> bool:
        """Whether the text has the whole edit."""
        return self.kind in {"exact", "alike", "with others"}


def match_edit(before: str, target: str, now: str) -> EditMatch:
    """Return how much of the edit that makes `target` of `before` is in the text as it is now."""
    if now == target:
        return EditMatch(kind="exact")
    if now == before:
        return EditMatch(kind="unchanged")
    plain = without_ends(target)
    if without_ends(now) == plain and without_ends(before) != plain:
        return EditMatch(kind="alike")
    head, tail = shared_ends(before, target, now)
    old, new, there = (lines_of(text[head : len(text) - tail]) for text in (before, target, now))
    passed = line_number0(before, head)
    others = line_hunks(old, there)
    gone = _marked([(one.old_start, one.old_end) for one in others], len(old))
    near = _marked([(one.old_start, one.old_end + 1) for one in others], len(old) + 1)
    lost = _marked([(one.old_start, one.old_end) for one in line_hunks(new, there)], len(new))
    applied: list[LineHunk] = []
    missing: list[LineHunk] = []
    mixed: list[LineHunk] = []
    for one in line_hunks(old, new):
        start, end = one.old_start, one.old_end
        if _is_removed(one, old, gone) and _is_brought(one, new, lost):
            rest = one.new_start == one.new_end and _has_rest(one, old, target=target, now=now)
            (mixed if rest else applied).append(one)
        elif any(gone[start:end] if start < end else near[start : end + 1]):
            (missing if _is_absent(one, old, new, before=before, now=now) else mixed).append(one)
        else:
            (mixed if _is_elsewhere(one, new, before=before, now=now) else missing).append(one)
    kind: Literal["with others", "partly", "none"] = "partly" if applied or mixed else "none"
    return EditMatch(
        kind=kind if missing or mixed else "with others",
        applied=_lower(applied, passed),
        missing=_lower(missing, passed),
        mixed=_lower(mixed, passed),
    )


def _lower(hunks: Sequence[LineHunk], lines: int) -> tuple[LineHunk, ...]:
    """Move hunks down by some lines."""
    return tuple(
        LineHunk(
            old_start=one.old_start + lines,
            old_end=one.old_end + lines,
            new_start=one.new_start + lines,
            new_end=one.new_end + lines,
        )
        for one in hunks
    )


def edit_error(
    found: EditMatch | None, answer: ApplyResponse, *, path: Path
) -> WorkspaceError | None:
    """Return the error that describes the true state to the model; None when the edit is there.

    Args:
        found: None when the document was closed, so that its text is unknown.
        answer: Answer of the editor.
        path: The file, for the message.
    """
    why = f" ({answer.reason})" if answer.reason else ""
    if found is None:
        return EditUnverified(f"{path} was closed in the editor while it was edited{why}. {AGAIN}")
    if found.is_whole:
        return None
    if found.kind == "partly":
        parts = (
            ("there", found.applied),
            ("missing", found.missing),
            ("changed by somebody else as well", found.mixed),
        )
        places = "; ".join(f"{what}: {_places(hunks)}" for what, hunks in parts if hunks)
        return EditUnverified(
            f"The edit of {path} is not in the editor as a whole{why}: {places}. {AGAIN}"
        )
    return _absence(found, answer, path)


def _absence(found: EditMatch, answer: ApplyResponse, path: Path) -> WorkspaceError:
    """Return why nothing of an edit is there."""
    if answer.applied is None:
        reason = answer.reason or "the editor did not answer"
        return EditUnverified(
            f"It is not known whether the edit of {path} was applied: {reason}. It may still come. {AGAIN}"
        )
    why = f" ({answer.reason})" if answer.reason else ""
    if found.kind == "none" and (answer.applied or answer.is_about_versions):
        return StaleText(
            f"{path} changed in the editor while it was edited{why}: nothing of the edit is in it. {AGAIN}"
        )
    if answer.applied:
        return StaleText(
            f"The editor said it applied the edit of {path}, but its text did not change: nothing was written. {AGAIN}"
        )
    reason = answer.reason.rstrip(".") or "it gave no reason; the text may just have changed"
    left = "It is not in the text" if found.kind == "none" else "Its text is as it was"
    return EditRefused(f"The editor refused the edit of {path}: {reason}. {left}.")


def without_ends(text: str) -> str:
    """Return a text without the differences that editors make: the kind of line ends, and one newline at the end."""
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


def _marked(ranges: Sequence[tuple[int, int]], count: int) -> list[bool]:
    marks = [False] * count
    for start, end in ranges:
        marks[start:end] = [True] * (end - start)
    return marks


def _is_removed(hunk: LineHunk, old: Sequence[str], gone: Sequence[bool]) -> bool:
    """Return whether the lines that a hunk takes away are gone."""
    start, end = hunk.old_start, hunk.old_end
    if hunk.new_start < hunk.new_end or all(gone[start:end]):
        return all(gone[start:end])
    # Of equal lines it does not matter which ones are gone.
    first, last = _slide(old, start, end)
    run = 0
    for is_gone in gone[first:last]:
        run = run + 1 if is_gone else 0
        if run == end - start:
            return True
    return False


def _is_brought(hunk: LineHunk, new: Sequence[str], lost: Sequence[bool]) -> bool:
    """Return whether the lines that a hunk brings are there. Of equal lines none may be lost, for it may be this one."""
    first, last = _slide(new, hunk.new_start, hunk.new_end)
    return not any(lost[first:last])


def _is_absent(
    hunk: LineHunk, old: Sequence[str], new: Sequence[str], *, before: str, now: str
) -> bool:
    """Return whether nothing of a hunk is in a text, for sure: nothing that it brings, and all that it takes away."""
    removed = "".join(old[hunk.old_start : hunk.old_end])
    brought = "".join(new[hunk.new_start : hunk.new_end])
    whole = TextEdit(start=0, end=len(removed), new_text=brought)
    for one in within_lines(removed, whole):
        taken = removed[one.start : one.end]
        if one.new_text.strip():
            if _has_some(now, one.new_text, before=before):
                return False
        elif not taken.strip() or now.count(taken) < before.count(taken):
            return False
    return True


def _is_elsewhere(hunk: LineHunk, new: Sequence[str], *, before: str, now: str) -> bool:
    """Return whether what a hunk brings has come to another place than its own."""
    brought = "".join(new[hunk.new_start : hunk.new_end]).strip()
    return brought != "" and now.count(brought) > before.count(brought)


def _has_rest(hunk: LineHunk, old: Sequence[str], *, target: str, now: str) -> bool:
    """Return whether something of lines that were to go is still there, in lines that somebody else made of them."""
    return _has_some(now, "".join(old[hunk.old_start : hunk.old_end]), before=target)


def _has_some(now: str, part: str, *, before: str) -> bool:
    """Return whether a piece of a text may be in another and was not there before, however it was cut up since."""
    text = "".join(part.split())
    if len(text) < FEW_CHARS:
        return any(now.count(char) > before.count(char) for char in set(text))
    pieces = {
        line[at : at + PIECE_CHARS]
        for line in part.split()
        for at in range(max(1, len(line) - PIECE_CHARS + 1))
    }
    if len(pieces) > MOST_PIECES:
        return True
    return any(piece in now and piece not in before for piece in pieces)


def _slide(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Widen a range over the lines among which it could stand as well."""
    size = end - start
    if size == 0:
        return start, end
    while start > 0 and lines[start - 1] == lines[start - 1 + size]:
        start -= 1
    while end < len(lines) and lines[end] == lines[end - size]:
        end += 1
    return start, end


def _places(hunks: Sequence[LineHunk]) -> str:
    named = [_place(one) for one in hunks[:SHOWN_PLACES]]
    if len(hunks) > SHOWN_PLACES:
        named.append(f"{len(hunks) - SHOWN_PLACES} more")
    return ", ".join(named)


def _place(hunk: LineHunk) -> str:
    """Name a hunk by the lines of the text that was wanted."""
    if hunk.new_start == hunk.new_end:
        return f"the deletion after line {hunk.new_start}"
    if hunk.new_end - hunk.new_start == 1:
        return f"line {hunk.new_end}"
    return f"lines {hunk.new_start + 1}-{hunk.new_end}"
