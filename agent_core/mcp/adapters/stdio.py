"""The transport to a server that is a program of ours: a line of JSON is a message, and nothing may be without end."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from agent_core.kernel.errors import ProcessGone, WorkspaceError
from agent_core.kernel.text import one_line
from agent_core.mcp.adapters.library import Wire, load
from agent_core.mcp.definitions import Stdio
from agent_core.mcp.port import ServerFailed
from agent_core.workspace.processes.interactive import InteractiveProcess, InteractiveProcesses

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

MESSAGE_BYTES: Final = 8 * 1024 * 1024
"""A longer message is a flood, and ends the connection."""
SLOW_TO_READ_BYTES: Final = 64 * 1024
"""Longer messages are read in a thread."""
ERRORS_KEPT: Final = 4_096
ERRORS_AT_ONCE: Final = 32 * 1024
LEAVE_S: Final = 1.0
"""How long a server may take to end when its input is closed, as the protocol wants it to."""
GRACE_S: Final = 0.5
COMPLAINTS_S: Final = 0.5
MARK: Final = b'"jsonrpc"'
MARKED_BYTES: Final = 200
STDERR_CHARS: Final = 300
WHY_CHARS: Final = 200
BURST: Final = 100
BURST_S: Final = 0.05
"""So many messages may come in so short a time; then there is a pause, in which others get their turn."""


@asynccontextmanager
async def stdio(
    way: Stdio, talks: InteractiveProcesses, *, env: Mapping[str, str], where: str
) -> AsyncGenerator[Wire]:
    """Start a program and exchange messages with it; at the end of the context it is gone, with all that it started.

    Args:
        way: The program.
        talks: Starts it.
        env: The environment of every command.
        where: How it is contained, for messages.

    Raises:
        ServerFailed: It cannot be started.
    """
    await load("mcp.shared.message", "mcp_types.jsonrpc")
    try:
        talk = await talks.talk(way.argv, cwd=way.cwd, env=env, given=way.env, needs=way.needs)
    except WorkspaceError as error:
        why = f"it cannot be started: {error}"
        raise ServerFailed(why) from error
    program = _Program(talk, where=where)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(program.listen)
            group.start_soon(program.speak)
            group.start_soon(program.hear_complaints)
            try:
                yield program.wire
            finally:
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await program.end()


class _Program:
    """A program that is spoken with, and the streams between it and the library."""

    def __init__(self, talk: InteractiveProcess, *, where: str) -> None:
        self._talk = talk
        self._where = where
        self._complaints = b""
        self._complained = anyio.Event()
        self._why = ""
        # Without room between them: what is not taken stays in the pipe, and the program waits.
        come = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
        go = anyio.create_memory_object_stream["SessionMessage"](0)
        self._come: MemoryObjectSendStream[SessionMessage | Exception] = come[0]
        self._go: MemoryObjectReceiveStream[SessionMessage] = go[1]
        self._ours = (come[1], go[0])
        self.wire = Wire(streams=self._ours, hint=self._hint)

    async def listen(self) -> None:
        """Read messages until the program closes its output."""
        async with self._come:
            try:
                await self._listen()
                # Why it ended, it says elsewhere.
                with anyio.move_on_after(COMPLAINTS_S):
                    await self._complained.wait()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # nobody wants to hear more
            finally:
                self._why = self._why or "it ended"
                self.wire.over.set()

    async def speak(self) -> None:
        """Write what is to be said."""
        async with self._go:
            async for one in self._go:
                said: str = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await self._talk.write(said.encode() + b"\n")
                except ProcessGone:
                    return  # its output tells of the end

    async def hear_complaints(self) -> None:
        """Keep the end of what it complains of."""
        while data := await self._talk.read_errors():
            self._complaints = (self._complaints + data)[-ERRORS_KEPT:]
            if len(data) >= ERRORS_AT_ONCE:
                await anyio.sleep(BURST_S)
        self._complained.set()

    async def end(self) -> None:
        """End the program: by closing its input, as the protocol wants it, else by force."""
        self._talk.finish()
        with anyio.move_on_after(LEAVE_S):
            _ = await self._talk.wait()
        _ = await self._talk.end(grace_s=GRACE_S)
        for stream in (*self._ours, self._come, self._go):
            stream.close()

    async def _listen(self) -> None:
        rest = bytearray()
        burst, begun_s = 0, anyio.current_time()
        while data := await self._talk.read():
            looked = len(rest)
            rest += data
            while (end := rest.find(b"\n", looked)) >= 0:
                line = bytes(rest[:end]).strip()
                del rest[: end + 1]
                looked = 0
                if not await self._take(line):
                    return
                burst += 1
                if burst >= BURST:
                    quick = BURST_S - (anyio.current_time() - begun_s)
                    await anyio.sleep(max(quick, 0))
                    burst, begun_s = 0, anyio.current_time()
            if len(rest) > MESSAGE_BYTES:
                self._why = (
                    f"it sent more than {MESSAGE_BYTES} bytes without an end; it was stopped"
                )
                return

    async def _take(self, line: bytes) -> bool:
        """Pass a line on; False when nothing more can come of this server."""
        if not line.startswith(b"{"):
            if line:
                # Many print a greeting; it harms nobody.
                self._complaints = (self._complaints + line[:200] + b"\n")[-ERRORS_KEPT:]
            return True
        try:
            if len(line) > SLOW_TO_READ_BYTES:
                message = await to_thread.run_sync(_parsed, line)
            else:
                message = _parsed(line)
        except ValueError as error:
            if MARK not in line[:MARKED_BYTES]:
                return True
            # Somebody waits for it, and would wait for ever.
            self._why = (
                f"it sent a message that cannot be read ({one_line(str(error))[:WHY_CHARS]})"
            )
            return False
        await self._come.send(message)
        return True

    def _hint(self) -> str:
        """Return why nothing comes any more; empty while something may."""
        if not self._why:
            return ""
        said = one_line(self._complaints.decode("utf-8", "replace").strip())
        suffix = f"; its last words: …{said[-STDERR_CHARS:]}" if said else ""
        return f"{self._why} ({self._where}){suffix}"


def _parsed(line: bytes) -> "SessionMessage":
    from mcp.shared.message import SessionMessage  # noqa: PLC0415 - loaded by now
    from mcp_types.jsonrpc import jsonrpc_message_adapter  # noqa: PLC0415 - as above

    return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
