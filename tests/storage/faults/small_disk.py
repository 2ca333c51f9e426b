"""A real file system of little room, in memory: it can be filled, freed, made read-only and taken away."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.support.workspace.mounts import small_file_system

SIZE_BYTES = 1 << 20
PAGE_BYTES = 4_096


class SmallDisk:
    """A file system of a megabyte at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Take all the room there is; files keep what is left of their last page."""
        with self._ballast.open("ab", buffering=0) as file:
            try:
                while file.write(bytes(PAGE_BYTES)):
                    pass
            except OSError:
                return

    def free(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)

    def make_read_only(self) -> None:
        """Refuse every change; no file may be open for writing."""
        _run("mount", "-o", "remount,ro", str(self.folder))

    def make_writable(self) -> None:
        """Allow changes again."""
        _run("mount", "-o", "remount,rw", str(self.folder))

    def take_away(self) -> None:
        """Unmount: what was in the folder is gone, for all who do not hold a file open."""
        _run("umount", "--lazy", str(self.folder))


@contextmanager
def small_disk(folder: Path) -> Generator[SmallDisk, None, None]:
    """Mount one at a folder, which is made; skips where nothing can be mounted."""
    folder.mkdir(parents=True)
    with small_file_system(folder, size_bytes=SIZE_BYTES):
        yield SmallDisk(folder)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
