"""Mounts small file systems, and keeps them apart from tests whose result the mounts of the machine decide."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

LOCK = Path(tempfile.gettempdir()) / f"tiller-tests-mounts-{os.getuid()}.lock"


@contextmanager
def small_file_system(folder: Path, *, size_bytes: int) -> Generator[None]:
    """Mount a file system in memory at a folder; skips the test where nothing can be mounted.

    Waits until no other process is within `unchanged_mounts` or has one mounted. Blocking.
    """
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command here")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    with _locked(fcntl.LOCK_EX):
        mounted = subprocess.run(mount, capture_output=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"nothing can be mounted here: {mounted.stderr.decode().strip()}")
        try:
            yield
        finally:
            if folder.is_mount():
                subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


@contextmanager
def unchanged_mounts() -> Generator[None]:
    """Keep `small_file_system` of other processes from mounting. Blocking."""
    with _locked(fcntl.LOCK_SH):
        yield


@contextmanager
def _locked(kind: int) -> Generator[None]:
    with LOCK.open("a") as file:
        fcntl.flock(file, kind)
        yield
