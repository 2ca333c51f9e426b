"""Session files by their paths, which pi's protocol names and `agent/*` does not."""

import os
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonObject
from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import as_object, as_text, decode

HEADER_BYTES: Final = 1 << 20
PRIVATE: Final = 0o600
"""File mode of exports, as of `tiller sessions export`."""


def session_file(sessions: Path, session: str) -> str | None:
    """Return the path of a session's file; None: it has none yet. Blocking."""
    found = sorted(sessions.glob(f"*/*{escape(session)}.jsonl"))
    return str(found[0]) if found else None


def session_of(sessions: Path, name: str, root: Path) -> str:
    """Return the id of the session that a path, or an id, names. Blocking.

    Args:
        sessions: Folder of the session files.
        name: Path of a file, absolute or below `root`, or an id.
        root: The workspace.

    Raises:
        UsageError: It names no session of Tiller.
    """
    if "/" not in name and not name.endswith(".jsonl"):
        return name
    path = root / name
    try:
        with path.open("rb") as file:
            line = file.readline(HEADER_BYTES)
    except OSError as error:
        message = f"session file {name!r} cannot be read ({error.strerror}): check sessionPath"
        raise UsageError(message) from error
    header: JsonObject = {}
    with suppress(ValueError):
        header = as_object(decode(line))
    session = as_text(header.get("id"))
    if header.get("type") != "session" or not session:
        message = f"{name!r} is not a session file: its first line is no session header"
        raise UsageError(message)
    own = session_file(sessions, session)
    if own is None or not Path(own).samefile(path):
        message = (
            f"{name!r} is not among Tiller's sessions: run `tiller sessions import` with it first"
        )
        raise UsageError(message)
    return session


def write_document(path: Path, document: bytes) -> None:
    """Write an export in place of what was there. Blocking.

    Raises:
        OSError: It cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        _ = file.write(document)
