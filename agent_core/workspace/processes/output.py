"""Output of a process: read without blocking, in large chunks when there is much, the rest kept when it is ended."""

import os
import sys
from contextlib import suppress

import anyio
from anyio import lowlevel

CHUNK_BYTES = 65_536
FLOOD_CHUNK_BYTES = 4 * CHUNK_BYTES
FLOOD_PIPE_BYTES = 1_048_576
"""Capacity of a pipe once a command has filled it: a large one saves most of the turns that much output needs."""
REST_BYTES = 1_048_576
"""How much of the output that nobody has read yet is kept when a process is ended."""
SEEN_BYTES = 16_384
"""How much of the end of it is remembered."""


class ProcessOutput:
    """The reading end of a pipe, which does not block; it is closed at the end, or by `close`."""

    def __init__(self, reading: int) -> None:
        self._reading: int | None = reading
        self._chunk_bytes = CHUNK_BYTES
        self._rest = b""
        self._seen = b""

    @property
    def seen(self) -> str:
        """The end of what was written so far."""
        return self._seen.decode("utf-8", "replace")

    async def read(self) -> bytes:
        """Wait for output and give a chunk; empty when every writer has closed it."""
        await lowlevel.checkpoint_if_cancelled()
        waited = False
        while self._reading is not None:
            try:
                data = os.read(self._reading, self._chunk_bytes)
            except BlockingIOError:
                try:
                    await anyio.wait_readable(self._reading)
                except anyio.ClosedResourceError:
                    break  # it was ended meanwhile
                waited = True
                continue
            if len(data) == CHUNK_BYTES == self._chunk_bytes:
                self._chunk_bytes = FLOOD_CHUNK_BYTES
                _widen(self._reading)
            if not data:
                self._close()
                break
            self._remember(data)
            if not waited:
                # A flood must let others run, and nothing of it may be lost.
                await lowlevel.cancel_shielded_checkpoint()
            return data
        rest, self._rest = self._rest, b""
        return rest

    def add(self, data: bytes) -> None:
        """Append data to the output of the process."""
        self._rest += data
        self._remember(data)

    def close(self) -> None:
        """Read the rest of the pipe, about `REST_BYTES` at most, and close it; later writes to it fail."""
        if self._reading is None:
            return
        parts: list[bytes] = []
        size = 0
        while size < REST_BYTES:
            try:
                part = os.read(self._reading, CHUNK_BYTES)
            except BlockingIOError:
                break
            if not part:
                break
            parts.append(part)
            size += len(part)
        self._close()
        self.add(b"".join(parts))

    def _remember(self, data: bytes) -> None:
        self._seen = (self._seen + data[-SEEN_BYTES:])[-SEEN_BYTES:]

    def _close(self) -> None:
        if self._reading is not None:
            anyio.notify_closing(self._reading)
            os.close(self._reading)
            self._reading = None


def _widen(pipe: int) -> None:
    """Enlarge the buffer of a pipe, where that is possible."""
    if sys.platform == "linux":
        import fcntl  # noqa: PLC0415 - not every system has it

        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, FLOOD_PIPE_BYTES)
