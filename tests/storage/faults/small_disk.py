"""A real file system of little room, in memory: it can be filled, freed, made read-only and taken away."""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

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
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(folder)]
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command here")
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        if os.path.ismount(folder):
            _run("umount", "--lazy", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
