"""Opens a folder name by name, for systems that cannot refuse links in one step. Blocking."""

import errno
import os
import stat
import sys
from collections.abc import Sequence

FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Passing through a folder needs no right to list it.
PASS = FOLDER | (os.O_PATH if sys.platform == "linux" else os.O_RDONLY)


class WalkGate:
    """See `Gate`."""

    def enter(self, folder: int | None, names: Sequence[str]) -> int:
        """Open a folder below another."""
        here = os.open("/", PASS) if folder is None else os.dup(folder)
        for name in names:
            try:
                step = _step(here, name)
            finally:
                os.close(here)
            here = step
        return here


def _step(folder: int, name: str) -> int:
    try:
        return os.open(name, PASS, dir_fd=folder)
    except NotADirectoryError as error:
        # Linux says so of links too.
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from error
        raise
