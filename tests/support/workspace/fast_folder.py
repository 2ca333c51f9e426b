"""A folder in memory, for tests that write and read the same file tens of thousands of times."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")  # noqa: S108 - only a place for folders with names of their own


@contextmanager
def fast_folder() -> Generator[Path, None, None]:
    """Give a new folder, in memory where the system has such a place; it is removed afterwards."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="tl-", dir=place) as folder:
        yield Path(folder)
