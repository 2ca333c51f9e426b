"""Diagnosis of a session that cannot be found: its file or a folder cannot be read, or there is none. Blocking."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent_core.kernel import SessionId
from agent_core.kernel.errors import (
    SessionDamaged,
    SessionNotFound,
    StorageUnavailable,
    TillerError,
)
from agent_core.storage.adapters.paths import EVENTS_SUFFIX, SUFFIX
from agent_core.storage.adapters.recovery import parse_line
from agent_core.transcript.codec import decode_header

HEADER_BYTES = 1 << 20
"""How far into a file its header is looked for."""
_SHARED_FAULTS = frozenset({errno.EACCES, errno.EPERM})


def why_not_found(folder: Path, session: SessionId) -> TillerError:
    """Return why there is no session: its file is there and cannot be read, a folder cannot be read, or it is nowhere.

    Args:
        folder: Of all sessions.
        session: An id, or how it begins.
    """
    closed: list[tuple[Path, OSError]] = []
    named = list(_named(folder, session, closed))
    # What begins so may be another session: the one of that very id comes first.
    for path in sorted(named, key=lambda one: not one.name.endswith(f"{session}{SUFFIX}")):
        found = _fault_of(path)
        if found is not None:
            return found
    if closed:
        places = "; ".join(f"{str(path)!r}: {_reason(error)}" for path, error in closed)
        message = (
            f"there is no session {session!r} in what can be read of {str(folder)!r}, and this cannot be: {places}; "
            "make it readable, then try again"
        )
        return StorageUnavailable(message)
    message = f"there is no session {session!r} in {str(folder)!r}: list the sessions to see which there are"
    return SessionNotFound(message)


def _named(folder: Path, session: SessionId, closed: list[tuple[Path, OSError]]) -> Iterator[Path]:
    """Return everything with the name of that session's file, whatever it is, as far as folders can be read."""
    for entry in _entries(folder, closed):
        if _is_named(entry.name, session):
            yield Path(entry.path)
        with suppress(OSError):
            if entry.is_dir():
                found = _entries(Path(entry.path), closed)
                yield from (Path(one.path) for one in found if _is_named(one.name, session))


def _is_named(name: str, session: SessionId) -> bool:
    if not session or not name.endswith(SUFFIX) or name.endswith(EVENTS_SUFFIX):
        return False
    stem = name.removesuffix(SUFFIX)
    # Ours begin with a time; one that was placed by hand may be called by its id alone.
    return stem.startswith(session) or stem.partition("_")[2].startswith(session)


def _entries(folder: Path, closed: list[tuple[Path, OSError]]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        closed.append((folder, error))
        return []


def _fault_of(path: Path) -> TillerError | None:
    """Return what is wrong with a file; None: nothing, its session has another id."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _damaged(path, "is a folder", "move it away")
        if not stat.S_ISREG(mode):
            return _damaged(path, "is no file", "move it away")
        return _fault_in(path)
    except OSError as error:
        advice = "make it readable" if error.errno in _SHARED_FAULTS else "check the disk"
        if path.is_symlink():
            advice = f"it is a link to {str(path.readlink())!r}: check what is there"
        message = (
            f"the session file {str(path)!r} could not be read: {_reason(error)}; {advice}, then try again, "
            "it was left as it is"
        )
        return StorageUnavailable(message)


def _fault_in(path: Path) -> TillerError | None:
    with path.open("rb") as file:
        left = HEADER_BYTES
        while left > 0 and (line := file.readline(left)):
            left -= len(line)
            raw = parse_line(line)
            if raw is None:
                continue
            try:
                _ = decode_header(raw)
            except ValueError as error:
                return _damaged(path, f"is no session file: {error}")
            return None
    if left == HEADER_BYTES:
        return _damaged(path, "is empty")
    return _damaged(path, "is no session file: there is no header in its first mebibyte")


def _damaged(
    path: Path, what: str, advice: str = "restore it from a copy or remove it"
) -> TillerError:
    return SessionDamaged(
        f"{str(path)!r} has the name of a session and {what}: {advice}; it was left as it is"
    )


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
