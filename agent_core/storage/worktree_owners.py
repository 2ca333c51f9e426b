"""The open sessions as the owners of worktrees."""

from pathlib import Path

import msgspec

from agent_core.kernel.values import threadsafe
from agent_core.storage.adapters.paths import (
    Owner,
    is_alive,
    is_written,
    session_files,
    tasks_folder,
    this_process,
)
from agent_core.storage.adapters.scan import read_header


class SessionOwners:
    """Sessions that a process has open now, as the owners of worktrees."""

    def __init__(self, sessions: Path) -> None:
        self._sessions = sessions

    def this_process(self) -> str:
        """Return the identity of this process."""
        return msgspec.json.encode(this_process()).decode()

    def active(self, folder: Path, *, owner: str, process: str, asking: str | None) -> str | None:
        """Return the open session that is the owner or works in the folder.

        An owner that is not stored, or not yet, is taken to be at work as long as its process lives.
        """
        is_stored = False
        tasks = tasks_folder(self._sessions)
        for path in (*session_files(self._sessions), *session_files(tasks)):
            is_owner = bool(owner) and path.name.endswith(f"_{owner}.jsonl")
            is_stored = is_stored or is_owner
            if not is_written(path) or (is_owner and owner == asking):
                continue
            header = read_header(path)
            if header is not None and (is_owner or Path(header.cwd).is_relative_to(folder)):
                return f"the session {header.id}"
        if owner and not is_stored and owner != asking and _is_other(process):
            return f"the session {owner}"
        return None


def _is_other(process: str) -> bool:
    """Return whether a process lives that is not this one."""
    try:
        owner = msgspec.json.decode(process, type=threadsafe(Owner))
    except msgspec.MsgspecError:
        return False
    return owner != this_process() and is_alive(owner)
