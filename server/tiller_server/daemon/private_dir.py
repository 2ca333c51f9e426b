"""Makes the folder of the daemon's files, and holds it to belong to one user alone."""

import os
import stat
from pathlib import Path
from typing import Final

from tiller_server.daemon.errors import CannotServe

PRIVATE: Final = 0o700
OTHERS: Final = 0o077


def private_folder(path: str) -> Path:
    """Return a folder that is ours alone, making it when it is missing. Blocking.

    Raises:
        CannotServe: It cannot be made, is a link, is another user's or open to others.
    """
    folder = Path(path)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=PRIVATE, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        message = f"the folder {path!r} cannot be made ({error.strerror}); set TILLER_RUNTIME_DIR to another one"
        raise CannotServe(message) from error
    if why := objection(found, uid=os.geteuid()):
        message = f"the folder {path!r} {why}, so the daemon keeps no socket there"
        raise CannotServe(message)
    return folder


def objection(found: os.stat_result, *, uid: int) -> str | None:
    """Return what is wrong with a folder for secrets of a user, if anything is. Pure."""
    if stat.S_ISLNK(found.st_mode):
        return "is a link; remove it, or set TILLER_RUNTIME_DIR to a folder"
    if not stat.S_ISDIR(found.st_mode):
        return "is no folder; remove it, or set TILLER_RUNTIME_DIR to another one"
    if found.st_uid != uid:
        return f"belongs to user {found.st_uid}, not to {uid}; set TILLER_RUNTIME_DIR to one of your own"
    if found.st_mode & OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        return f"is open to other users (mode {mode:04o}); chmod 700 it"
    return None
