"""Pending changes as the text of a unified diff; pure."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from agent_core.changes.hunks import FileReview, revert_hunks
from agent_core.kernel.text import one_line
from agent_core.workspace.diff.unified_diff import unified
from agent_core.workspace.files.paths import relative_name

HEAD: Final = (
    "# Tiller: what waits for your word. This document is made anew whenever that changes.\n"
)
"""The first line, by which the document is known as ours."""
NOTHING: Final = "# Nothing waits.\n"
MOST_CHARS: Final = 4_194_304


def diff_text(files: Iterable[FileReview], *, root: Path) -> str:
    """Return the document.

    Args:
        files: Files as they are now; those without pending changes are left out.
        root: Folder that the names are relative to.
    """
    parts = [HEAD]
    size = left_out = 0
    for file in files:
        if not file.is_pending:
            continue
        part = _of_file(file, _name(file.path, root))
        if size + len(part) > MOST_CHARS:
            left_out += 1
            continue
        size += len(part)
        parts.append(part)
    if left_out:
        parts.append(f"# {left_out} more files are left out, for the document would be too long.\n")
    return "".join(parts) if len(parts) > 1 else HEAD + NOTHING


def _of_file(file: FileReview, name: str) -> str:
    pending = {one.id for one in file.hunks if one.is_pending}
    if file.text is None or (file.waits_whole and file.op == "move"):
        return f"# {name}: {_said(file)}\n"
    before = revert_hunks(file.text, file.hunks, pending)[0]
    is_new, is_gone = file.first is None and not before, file.last is None
    shown = unified(name, None if is_new else before, None if is_gone else file.text)
    # What has no hunks to speak of, such as an empty file that is new, is told in words.
    return shown if "@@" in shown else f"# {name}: {_said(file)}\n"


def _said(file: FileReview) -> str:
    match file.op:
        case "add":
            return "new"
        case "delete":
            return "deleted"
        case "move":
            return f"moved from {one_line(str(file.origin))}"
        case _:
            return "changed, and no text"


def _name(path: Path, root: Path) -> str:
    return one_line(relative_name(path, root))
