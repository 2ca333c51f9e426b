"""Where the file of a session lies, and what it is called."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from agent_core.kernel import rfc3339
from agent_core.kernel.errors import UsageError
from agent_core.storage.adapters.fsync import flush_folder
from agent_core.transcript.entries import Header

SUFFIX = ".jsonl"
EVENTS_SUFFIX = ".events.jsonl"
"""In the place of a session's suffix: its recorded events, which end like a session and are none."""
DAMAGED_SUFFIX = ".damaged"
"""Suffix after a session's name: the file with the bytes that were cut off its end."""
OLD_SUFFIX = ".old"
"""Behind a session's name: the file as it was before it was brought to today's format."""
NEW_SUFFIX = ".new"
"""Behind a session's name: the file that is about to take its place."""
NAME_BYTES = 255
"""Longest file name that a file system allows, in bytes."""
HASH_CHARS = 16
ID_CHARS = 128
FOLDER_MODE = 0o700
FILE_MODE = 0o600

_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SEPARATORS = re.compile(r"[/\\:]")


def slug(cwd: str) -> str:
    """Name the folder that holds the sessions of a workspace; one that is too long is cut and hashed."""
    inner = _SEPARATORS.sub("-", re.sub(r"^[/\\]", "", cwd))
    name = f"--{inner}--"
    if len(os.fsencode(name)) <= NAME_BYTES:
        return name
    mark = hashlib.sha256(os.fsencode(cwd)).hexdigest()[:HASH_CHARS]
    room = NAME_BYTES - len(f"---{mark}--")
    head = os.fsencode(inner)[:room].decode("utf-8", "ignore")
    return f"--{head}-{mark}--"


def file_name(header: Header) -> str:
    """Name a session's file: by time, then id.

    Raises:
        UsageError: The id cannot be part of a file name.
    """
    if not can_name_a_file(header.id):
        message = (
            f"the session id {header.id!r:.200} cannot name a file: use at most {ID_CHARS} letters, digits, "
            "dots, dashes and underscores, beginning and ending with a letter or digit"
        )
        raise UsageError(message)
    stamp = rfc3339(header.at_ms).replace(":", "-").replace(".", "-")
    return f"{stamp}_{header.id}{SUFFIX}"


def can_name_a_file(session: str) -> bool:
    """Return whether an id can be part of a file name; one that was written into a file by hand may be anything."""
    return len(session) <= ID_CHARS and _ID.fullmatch(session) is not None


def session_files(folder: Path) -> Iterator[Path]:
    """Return every file that may be a session: in the folder and in the workspaces' folders below it."""
    subfolders: list[Path] = []
    for entry in _entries(folder):
        if entry.is_dir():
            subfolders.append(Path(entry.path))
        elif _is_session(entry):
            yield Path(entry.path)
    for subfolder in subfolders:
        yield from (Path(entry.path) for entry in _entries(subfolder) if _is_session(entry))


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, for the user alone; their names survive a power cut."""
    missing: list[Path] = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode=FOLDER_MODE, exist_ok=True)
        flush_folder(one.parent)


def _is_session(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    return name.endswith(SUFFIX) and not name.endswith(EVENTS_SUFFIX) and _is_file(entry)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []  # not made yet, or not ours to read: it holds no session that we could open
