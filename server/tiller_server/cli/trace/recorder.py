"""Stands between an editor and a server, passes every byte on and keeps every message without its secrets."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonValue, SystemClock, rfc3339
from agent_core.kernel.json import decode
from agent_core.kernel.redaction.redactor import Redactor
from tiller_server.cli.trace.file import Side, TraceMessage, broken_line, head_line, line_of
from tiller_server.lsp.transport.framing import FrameError, FrameReader
from tiller_server.lsp.transport.stdio import InputStream, stdio_streams

READ_BYTES: Final = 64 * 1024
LINES_HELD: Final = 1_000
"""How many messages may wait for the disk before the connection does."""
OF_PROGRESS: Final = frozenset(
    {"$/progress", "window/workDoneProgress/create", "window/workDoneProgress/cancel", "agent/ack"}
)
"""Whose `token` is a name and no secret; without it nobody could tell what belongs together."""


class TraceRecorder:
    """Trace that is being written. The event loop queues the messages; `run` writes them on a thread."""

    def __init__(self, fd: int, *, redactor: Redactor) -> None:
        """Create a recording that owns the open file; `run` closes it."""
        self._fd = fd
        self._redactor = redactor
        self._began_s = time.monotonic()
        self._lines: asyncio.Queue[Callable[[], bytes] | None] = asyncio.Queue(LINES_HELD)

    async def heard(self, side: Side, body: bytes) -> None:
        """Keep a message; waits when the disk is far behind."""
        at_ms = self._now_ms()
        await self._lines.put(lambda: self._line(side, body, at_ms))

    async def broke(self, side: Side, why: str) -> None:
        """Keep that the messages of a side cannot be told apart any more."""
        at_ms = self._now_ms()
        await self._lines.put(lambda: broken_line(side, self._redactor.text(why), at_ms=at_ms))

    async def end(self) -> None:
        """Request the end of `run`, after everything queued is written."""
        await self._lines.put(None)

    async def run(self) -> None:
        """Write until the end; a disk that fails ends the recording and not the connection."""
        is_open = True
        while (line := await self._lines.get()) is not None:
            if is_open:
                is_open = await asyncio.to_thread(self._write, line)
        os.close(self._fd)

    def _write(self, line: Callable[[], bytes]) -> bool:
        try:
            view = memoryview(line())
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            return False
        return True

    def _line(self, side: Side, body: bytes, at_ms: float) -> bytes:
        try:
            said = decode(body.decode())
            message = _named(said, self._redactor.json(said), self._redactor)
        except (ValueError, RecursionError) as error:
            return broken_line(side, f"no JSON: {type(error).__name__}", at_ms=at_ms)
        if not isinstance(message, Mapping):
            return broken_line(side, "a message that is no object", at_ms=at_ms)
        return line_of(TraceMessage(at_ms=at_ms, side=side, message=message))

    def _now_ms(self) -> float:
        return (time.monotonic() - self._began_s) * 1000


async def record(
    file: Path, server: tuple[str, ...], *, env: Mapping[str, str], redactor: Redactor
) -> int:
    """Serve the editor at standard input and output by another server; gives its exit code.

    Raises:
        OSError: The file cannot be made, or the server cannot be started.
    """
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    _ = os.write(fd, head_line(server, at=rfc3339(SystemClock().now_ms())))
    child = await asyncio.create_subprocess_exec(
        *server, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=dict(env)
    )
    assert child.stdin is not None  # noqa: S101 - both are pipes
    assert child.stdout is not None  # noqa: S101 - both are pipes
    reader, sink = await stdio_streams()
    recording = TraceRecorder(fd, redactor=redactor)
    async with asyncio.TaskGroup() as tasks:
        _ = tasks.create_task(recording.run())
        to_server = tasks.create_task(
            _pass_on(reader, child.stdin.write, child.stdin.drain, recording, "client")
        )
        to_server.add_done_callback(lambda _: child.stdin and child.stdin.close())
        await _pass_on(child.stdout, sink.write, sink.drain, recording, "server")
        _ = to_server.cancel()
        await recording.end()
    return await child.wait()


async def _pass_on(
    source: InputStream,
    write: Callable[[bytes], object],
    drain: Callable[[], Awaitable[object]],
    recording: TraceRecorder,
    side: Side,
) -> None:
    """Pass bytes on until their end, first to the other side, then into the trace."""
    frames: FrameReader | None = FrameReader()
    with suppress(ConnectionError):
        while data := await source.read(READ_BYTES):
            _ = write(data)
            await drain()
            if frames is None:
                continue
            try:
                frames.feed(data)
                while (body := frames.take()) is not None:
                    await recording.heard(side, bytes(body))
            except FrameError as error:
                await recording.broke(side, str(error))
                frames = None


def _named(said: JsonValue, redacted: JsonValue, redactor: Redactor) -> JsonValue:
    """Restore the token of a progress message that was taken for a secret; secrets inside it stay redacted."""
    if not isinstance(said, Mapping) or not isinstance(redacted, Mapping):
        return redacted
    params, kept = said.get("params"), redacted.get("params")
    if said.get("method") not in OF_PROGRESS or not isinstance(params, Mapping):
        return redacted
    if not isinstance(kept, Mapping) or "token" not in params:
        return redacted
    token = params["token"]
    name = redactor.text(token) if isinstance(token, str) else token
    return {**redacted, "params": {**kept, "token": name}}
