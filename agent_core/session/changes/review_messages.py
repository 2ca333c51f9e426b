"""Text for the model about rejections and notes, at its next run; pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent_core.changes.history.hunk_tracker import FileReview
from agent_core.changes.history.hunks import Hunk
from agent_core.changes.values import Op
from agent_core.session.changes.review import RejectedChange
from agent_core.workspace.diff.minimal_edits import line_number0

CUSTOM_TYPE: Final = "tiller.review"
SHOWN_CHARS: Final = 2_000
"""How much of what was rejected is repeated; the model wrote it and can read the file."""
SHOWN_HUNKS: Final = 20


def rejection_message(rejected: Sequence[RejectedChange], note: str | None) -> str:
    """Return what was rejected, and what the user said to it."""
    if not rejected:
        return f"The user looked at your changes and notes: {note}"
    lines: list[str] = [
        "The user rejected some of your changes. They were taken out of the files again; do not make them again unasked."
    ]
    left = SHOWN_CHARS
    places = [(one, hunk) for one in rejected for hunk in one.hunks or (None,)]
    for one, hunk in places[:SHOWN_HUNKS]:
        location = _place(one, hunk)
        shown = "" if hunk is None or left <= 0 else _rows(hunk, left)
        left -= len(shown)
        lines.append(f"{location}{shown}")
    if len(places) > SHOWN_HUNKS:
        lines.append(f"- and {len(places) - SHOWN_HUNKS} more")
    if note:
        lines.append(f"The user's note: {note}")
    return "\n".join(lines)


def _place(one: RejectedChange, hunk: Hunk | None) -> str:
    file = one.file
    if one.whole:
        return f"- {file.path}: {_WHOLE[file.op]}"
    if hunk is None:
        return f"- {file.path}"
    return f"- {file.path}, line {_line(file, hunk)}"


def _line(file: FileReview, hunk: Hunk) -> int:
    return line_number0(file.text or "", hunk.start) + 1


def _rows(hunk: Hunk, limit: int) -> str:
    rows = [f"-{row}" for row in hunk.old.splitlines()] + [
        f"+{row}" for row in hunk.new.splitlines()
    ]
    text = "\n".join(rows)
    cut = f"{text[:limit]}\n… (shortened)" if len(text) > limit else text
    return f"\n{cut}"


_WHOLE: Final[Mapping[Op, str]] = {
    "add": "the new file was removed",
    "delete": "the deleted file is back",
    "move": "the file has its old name again",
    "modify": "the file is as it was before",
}
