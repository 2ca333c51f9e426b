"""Input of a process: a pipe that we write into, or a file with all of the data."""

import os
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

import anyio
from anyio import lowlevel

from agent_core.kernel.errors import ProcessGone


class ProcessInput:
    """The writing end of a pipe, which does not block."""

    def __init__(self, writing: int) -> None:
        self._writing: int | None = writing
        self._turn = anyio.Lock()

    async def write(self, data: bytes) -> None:
        """Write all of the data; concurrent writes do not mix.

        Raises:
            ProcessGone: The process does not read its input any more, or the input was closed.
        """
        async with self._turn:
            left = memoryview(data)
            while left:
                left = left[await self._some(left) :]

    def close(self) -> None:
        """Close the pipe, so that its reader sees the end. Idempotent."""
        if self._writing is not None:
            anyio.notify_closing(self._writing)
            os.close(self._writing)
            self._writing = None

    async def _some(self, data: memoryview) -> int:
        await lowlevel.checkpoint_if_cancelled()
        if self._writing is None:
            message = "its input was closed"
            raise ProcessGone(message)
        try:
            return os.write(self._writing, data)
        except BlockingIOError:
            with suppress(anyio.ClosedResourceError):
                await anyio.wait_writable(self._writing)
            return 0
        except OSError as error:
            message = f"it does not read its input any more ({error.strerror})"
            raise ProcessGone(message) from error


def open_input(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    """Open a pipe into which we write without blocking; gives the reading and the writing end."""
    reading, writing = os.pipe()
    theirs.callback(os.close, reading)
    ours.callback(os.close, writing)
    os.set_blocking(writing, False)
    return reading, writing


@contextmanager
def input_of(data: bytes) -> Generator[int]:
    """Return a descriptor from which a process that is started reads the data. Blocking.

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
