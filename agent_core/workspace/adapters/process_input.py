"""What a process reads as its input."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import BinaryIO


@contextmanager
def input_of(data: bytes) -> Generator[int]:
    """Give a descriptor from which a process that is started reads the data. Blocking.

    A file without a name, not a pipe: whether and when the process reads, nobody waits for it.

    Raises:
        OSError: There is no room for the data.
    """
    if not data:
        opened = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield opened
        finally:
            os.close(opened)
        return
    with _nameless() as file:
        _ = file.write(data)
        _ = file.seek(0)
        yield file.fileno()


def _nameless() -> BinaryIO:
    # Not every system, nor every container, has files in memory.
    with suppress(AttributeError, OSError):
        return os.fdopen(os.memfd_create("tiller-input"), "w+b")
    return tempfile.TemporaryFile()
