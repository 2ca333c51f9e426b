"""Removes a session's file and what lies beside it. Blocks."""

from pathlib import Path

from agent_core.storage.adapters.fsync import flush_folder
from agent_core.storage.adapters.paths import (
    DAMAGED_SUFFIX,
    EVENTS_SUFFIX,
    NEW_SUFFIX,
    OLD_SUFFIX,
    SUFFIX,
)
from agent_core.storage.adapters.session_file import SessionFile, unavailable


def remove(path: Path) -> None:
    """Delete a session permanently.

    Raises:
        SessionLocked: A running process has it open for writing.
        StorageUnavailable: The file cannot be deleted; the files beside it may be deleted already.
    """
    file = SessionFile.opened(path)
    try:
        for beside in (DAMAGED_SUFFIX, OLD_SUFFIX, NEW_SUFFIX):
            path.with_name(path.name + beside).unlink(missing_ok=True)
        path.with_name(path.name.removesuffix(SUFFIX) + EVENTS_SUFFIX).unlink(missing_ok=True)
        path.unlink()
        flush_folder(path.parent)
    except OSError as error:
        raise unavailable(path, "removed", error) from error
    finally:
        file.close()
