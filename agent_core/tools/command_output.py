"""Output of a command: its end in memory, all of it in a file once it is long, live chunks for people."""

import codecs
import errno
import os
import secrets
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio

from agent_core.kernel.private_file import make_private_folder
from agent_core.kernel.text import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_LINES,
    PlainStream,
    Truncation,
    format_size,
    plain,
    truncate_tail,
)
from agent_core.kernel.threads import run_in_thread

WINDOW_BYTES = 100 * 1_024
"""Size of the end that is kept in memory; more than the model ever gets."""
FILE_LIMIT_BYTES = 2 * 1_024 * 1_024 * 1_024
"""A command that writes without end must not fill the disk."""
FLUSH_BYTES = 1_048_576
LIVE_S = 0.1
LIVE_BYTES = 16_384
"""How much is shown at a time; a fast command shows its newest output only."""
LEFT_OUT = "\n[…]\n"


class OutputFile:
    """The whole output on disk, made when it is first written to; private."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: int | None = None
        self._waiting = bytearray()
        self.size = 0
        """Bytes in the file."""
        self.path: str | None = None
        self.problem: str | None = None
        """Why the file does not hold everything."""

    def named(self, name: str) -> str:
        """Return the line that names the file, and why it is missing or cut.

        Args:
            name: Name of the file for the reader, such as `Log`.
        """
        line = f"{name}: {self.path}" if self.path else f"The {name.lower()} was not kept"
        if self.problem:
            line += f", cut: {self.problem}" if self.path else f": {self.problem}"
        return line

    async def create(self) -> None:
        """Make the file before there is any output; a failure is in `problem`."""
        await run_in_thread(self._write, b"")

    async def add(self, data: bytes) -> None:
        """Add output to the buffer, and write the buffer once it holds `FLUSH_BYTES`."""
        if self.problem is None:
            self._waiting += data
            if len(self._waiting) >= FLUSH_BYTES:
                await self.flush()

    async def flush(self) -> None:
        """Write what waits."""
        if not self._waiting:
            return
        data = bytes(self._waiting)
        self._waiting.clear()
        # A thread that has not begun is not started once its task is cancelled, and the output would be lost.
        with anyio.CancelScope(shield=True):
            await run_in_thread(self._write, data)

    async def close(self) -> None:
        """Write the rest and let go of the file."""
        await self.flush()
        if self._file is not None:
            file, self._file = self._file, None
            await run_in_thread(os.close, file)

    def _write(self, data: bytes) -> None:
        try:
            if self._file is None:
                self._file = self._open()
            room = FILE_LIMIT_BYTES - self.size
            view = memoryview(data)[:room]
            while view:
                written = os.write(self._file, view)
                self.size += written
                view = view[written:]
            if room < len(data):
                self.problem = f"it is longer than {format_size(FILE_LIMIT_BYTES)}"
        except OSError as error:
            self.problem = error.strerror or str(error)
            self._forget_if_empty()

    def _forget_if_empty(self) -> None:
        if self.path is not None and self.size == 0:
            with suppress(OSError):
                Path(self.path).unlink()
            self.path = None

    def _open(self) -> int:
        if not self._folder:
            raise FileNotFoundError(errno.ENOENT, "there is no folder for it")
        folder = Path(self._folder)
        make_private_folder(folder)
        path = folder / f"bash-{secrets.token_hex(8)}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(path, flags, 0o600)
        self.path = str(path)
        return file


class LiveOutput:
    """Shows output to people at most ten times a second."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text_stream = PlainStream()
        self._waiting = bytearray()
        self._left_out = False
        self._changed = anyio.Event()

    def add(self, data: bytes) -> None:
        """Add output to the buffer; only the newest is kept until it is shown."""
        if len(data) > 2 * LIVE_BYTES:
            self._waiting.clear()
            data = data[-LIVE_BYTES:]
            self._left_out = True
        self._waiting += data
        if len(self._waiting) > 2 * LIVE_BYTES:
            del self._waiting[:-LIVE_BYTES]
            self._left_out = True
        self._changed.set()

    async def run(self) -> None:
        """Show what comes, until cancelled."""
        while True:
            await self._changed.wait()
            self.flush()
            await anyio.sleep(LIVE_S)

    def flush(self, *, final: bool = False) -> None:
        """Show what waits."""
        self._changed = anyio.Event()
        data = bytes(self._waiting)
        self._waiting.clear()
        if self._left_out:
            self._left_out = False
            self._decoder.reset()
            # The cut may lie inside a character.
            data = LEFT_OUT.encode() + data.lstrip(bytes(range(0x80, 0xC0)))
        text = self._text_stream.push(self._decoder.decode(data, final))
        if final:
            text += self._text_stream.finish()
        if text:
            self._show(text)


class OutputCapture:
    """Everything that a command writes, counted exactly."""

    def __init__(self, *, folder: str, live: LiveOutput) -> None:
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._line_bytes = 0
        self._last_line_bytes = 0
        self._newlines = 0
        self._live = live
        self.total_bytes = 0
        self.file = OutputFile(folder)

    async def add(self, data: bytes) -> None:
        """Add a chunk of output: count it, show it, and write it to the file once the output is long."""
        was_long = self._is_long()
        self._count(data)
        self._chunks.append(data)
        self._held += len(data)
        self._live.add(data)
        if was_long:
            await self.file.add(data)
        elif self._is_long():
            # Until now the window holds all there was.
            await self.file.add(b"".join(self._chunks))
        while self._held - len(self._chunks[0]) >= WINDOW_BYTES:
            self._held -= len(self._chunks.popleft())

    async def close(self) -> None:
        """Finish the file."""
        self._live.flush(final=True)
        await self.file.close()

    async def hand_over(self) -> OutputFile:
        """Return the file with all of the output so far; the caller adds the rest and closes it."""
        if not self._is_long():
            await self.file.create()
            await self.file.add(b"".join(self._chunks))
        await self.file.flush()
        return self.file

    def tail(self) -> Truncation:
        """Return the end of the output with the counts of all of it."""
        held = b"".join(self._chunks)
        if self._held < self.total_bytes:
            held = held.lstrip(bytes(range(0x80, 0xC0)))  # the window may begin inside a character
        text = plain(held.decode("utf-8", "replace"))
        end = truncate_tail(text)
        total_lines = self._newlines + (1 if self._line_bytes else 0)
        cut = end.truncated or self._held < self.total_bytes
        return Truncation(
            content=end.content,
            truncated=cut,
            truncated_by=end.truncated_by or ("bytes" if cut else None),
            total_lines=total_lines,
            total_bytes=self.total_bytes,
            output_lines=end.output_lines,
            output_bytes=end.output_bytes,
            last_line_partial=end.last_line_partial,
            max_lines=end.max_lines,
            max_bytes=end.max_bytes,
        )

    def colors(self, text: str) -> tuple[tuple[int, int, str], ...]:
        """Return the colours of the end of the output, which `text` is."""
        held = b"".join(self._chunks)
        if b"\x1b[" not in held:
            return ()
        from agent_core.tools.output_colors import color_spans  # noqa: PLC0415 - few commands write colours

        return color_spans(held.decode("utf-8", "replace"), text)

    def last_line_bytes(self) -> int:
        """Return the size of the last line, of which the window may hold only the end."""
        return self._line_bytes or self._last_line_bytes

    def _is_long(self) -> bool:
        return self.total_bytes > DEFAULT_MAX_BYTES or self._newlines > DEFAULT_MAX_LINES

    def _count(self, data: bytes) -> None:
        self.total_bytes += len(data)
        newlines = data.count(b"\n")
        if newlines:
            self._newlines += newlines
            last = data.rfind(b"\n")
            before = data.rfind(b"\n", 0, last)
            # The last whole line begins in this chunk, or in one before it.
            self._last_line_bytes = last - before - 1 if before >= 0 else self._line_bytes + last
            self._line_bytes = len(data) - last - 1
        else:
            self._line_bytes += len(data)
