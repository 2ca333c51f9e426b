"""Bounds what a reviewer reads of deleted files, which may be as long as they like: pure."""

from collections.abc import Sequence
from typing import Final

from agent_core.kernel.values import Value
from tiller_server.review.findings.result import LeftOut
from tiller_server.review.git.diff import ChangedFile

MOST_LINES: Final = 200
"""Of one file. Its beginning mostly shows its purpose and its definitions."""
MOST_BYTES: Final = 8_192
"""Of one file."""
MOST_BYTES_IN_ALL: Final = 65_536
"""Of all deleted files of a change: a folder that goes must not cost what a review of it would."""
NO_END: Final = b"\\ No newline at end of file\n"


class DeletedFileExcerpt(Value, frozen=True, kw_only=True):
    """The beginning of a deleted file."""

    lines: tuple[str, ...]
    """Without signs. Bytes that are no UTF-8 are U+FFFD."""
    more_lines: int
    """How many lines follow that are not shown."""
    more_bytes: int
    """How many bytes these have."""


def beginning_of(file: ChangedFile) -> DeletedFileExcerpt:
    """Return what is shown of a deleted file: whole lines, at least one when there is any."""
    _, _, body = file.patch.removesuffix(NO_END).partition(b"\n")
    taken: list[bytes] = []
    at = size = 0
    while at < len(body) and body[at : at + 1] == b"-" and len(taken) < MOST_LINES:
        end = body.find(b"\n", at)
        line = body[at + 1 : end if end >= 0 else len(body)]
        if taken and size + len(line) > MOST_BYTES:
            break
        taken.append(line)
        size += len(line) + 1
        at += len(line) + 2
    rest = max(file.deletions - len(taken), 0)
    return DeletedFileExcerpt(
        lines=tuple(line.decode("utf-8", "replace") for line in taken),
        more_lines=rest,
        # Each of them has its sign, which is no part of it.
        more_bytes=max(len(body) - at - rest, 0) if rest else 0,
    )


def within_bounds(
    files: Sequence[ChangedFile],
) -> tuple[tuple[ChangedFile, ...], tuple[LeftOut, ...]]:
    """Part the files into those that are shown and the deleted ones for which there is no room, with the reason."""
    shown: list[ChangedFile] = []
    over: list[LeftOut] = []
    room = MOST_BYTES_IN_ALL
    for file in files:
        size = min(len(file.patch), MOST_BYTES)
        if file.status != "deleted":
            shown.append(file)
        elif size <= room:
            shown.append(file)
            room -= size
        else:
            lines = f"{file.deletions:,} line{'' if file.deletions == 1 else 's'}"
            reason = f"deleted, {lines}: of deleted files {MOST_BYTES_IN_ALL:,} bytes are read"
            over.append(LeftOut(path=file.path, reason=reason))
    return tuple(shown), tuple(over)
