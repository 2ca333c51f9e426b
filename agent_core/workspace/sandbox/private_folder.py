"""A temporary folder that the commands of one session share, and nobody else sees; beside it an empty file."""

import os
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PrivateFolder:
    """Makes the folder when it is first needed."""

    def __init__(self) -> None:
        self._top: Path | None = None
        self._end: weakref.finalize[..., PrivateFolder] | None = None

    @property
    def top(self) -> Path:
        """The folder around all of it. Blocking."""
        return self._made()

    @property
    def path(self) -> Path:
        """The folder. Blocking."""
        return self._made() / "shared"

    @property
    def empty_file(self) -> Path:
        """A file with nothing in it, which no command can change. Blocking."""
        return self._made() / "empty"

    def close(self) -> None:
        """Remove it. Blocking, idempotent."""
        if self._end is not None:
            _ = self._end()
        self._top = None

    def _made(self) -> Path:
        if self._top is None:
            top = self._top = Path(os.path.realpath(tempfile.mkdtemp(prefix="tiller-tmp-")))
            # Also when nobody closes: with this object, or at the latest with the process.
            self._end = weakref.finalize(self, _remove, top)
            (top / "shared").mkdir(mode=0o700)
            (top / "empty").touch(mode=0o444)
        return self._top


def _remove(top: Path) -> None:
    """Remove a folder, however deep it is."""
    try:
        shutil.rmtree(top, ignore_errors=True)
    except RecursionError:
        _flatten(top)
        shutil.rmtree(top, ignore_errors=True)


def _flatten(top: Path) -> None:
    """Move all that is in the folders of a folder directly into it, through no link."""
    with suppress(OSError):
        into = os.open(top, FOLDER)
        try:
            names, count = os.listdir(into), 0  # noqa: PTH208 - a descriptor
            while names:
                with suppress(OSError):
                    name = names.pop()
                    if not stat.S_ISDIR(os.lstat(name, dir_fd=into).st_mode):
                        continue
                    inner = os.open(name, FOLDER, dir_fd=into)
                    try:
                        os.fchmod(inner, 0o700)
                        for one in os.listdir(inner):  # noqa: PTH208 - a descriptor
                            count += 1
                            os.rename(one, f".{count}.flat", src_dir_fd=inner, dst_dir_fd=into)
                            names.append(f".{count}.flat")
                    finally:
                        os.close(inner)
        finally:
            os.close(into)
