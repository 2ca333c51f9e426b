"""Edits that no editor could take: kept as patches in a folder of the user's own, for the user to apply."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from anyio import to_thread

from agent_core.changes.unified import unified

MOST: Final = 50
"""So many patches of a session are kept; the oldest go first."""


def _unheard(path: Path, patch: Path) -> None:
    _ = path, patch


class Proposals:
    """The patches of one session."""

    def __init__(self) -> None:
        """Begin without a folder: then nothing is kept."""
        self.tell: Callable[[Path, Path], None] = _unheard
        """Called with the file and its patch when one was kept."""
        self._folder: Path | None = None
        self._root = Path("/")

    def keep_in(self, folder: Path, *, root: Path) -> None:
        """Keep patches in a folder, which is made when the first one comes.

        Args:
            folder: Of this session alone.
            root: Names in patches are relative to it.
        """
        self._folder, self._root = folder, root

    async def keep(self, path: Path, before: str, after: str) -> Path | None:
        """Keep an edit; give the file of its patch, None when it could not be written."""
        if self._folder is None:
            return None
        is_inside = path.is_relative_to(self._root)
        name = (path.relative_to(self._root) if is_inside else Path(path.name)).as_posix()
        try:
            patch = await to_thread.run_sync(_write, self._folder, name, before, after)
        except OSError:
            return None
        self.tell(path, patch)
        return patch


def _write(folder: Path, name: str, before: str, after: str) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = sorted(one.name for one in folder.glob("*.diff"))
    for old in there[: max(0, len(there) - MOST + 1)]:
        (folder / old).unlink(missing_ok=True)
    number = int(there[-1].partition("-")[0]) + 1 if there else 1
    patch = folder / f"{number:06}-{Path(name).name[:80]}.diff"
    data = unified(name, before, after).encode("utf-8", "surrogatepass")
    descriptor = os.open(patch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        _ = file.write(data)
    return patch
