"""Byte pipes between the scripted client and a server: a process, a socket, or a pair of streams."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from socket import socket
from typing import Protocol, cast

from typing_extensions import override

READ_BYTES = 64 * 1024
CLOSE_S = 5.0


class Ear(Protocol):
    """Who hears what a link brings in."""

    def bytes_came(self, raw: bytes) -> None:
        """Take the next bytes."""
        ...

    def link_ended(self, why: str) -> None:
        """Take note that no more bytes will come."""
        ...


class Link(Protocol):
    """One connection to a server. Writing never waits; what the server does not read is kept."""

    def write(self, raw: bytes) -> None:
        """Send bytes in order."""
        ...

    def stop_reading(self) -> None:
        """Leave everything the server sends in the pipe."""
        ...

    def resume_reading(self) -> None:
        """Read again."""
        ...

    def close_input(self) -> None:
        """Tell the server that nothing more will be sent."""
        ...

    async def close(self) -> None:
        """End the connection at once, and the process if it is one; safe to repeat."""
        ...


class ProcessLink(asyncio.SubprocessProtocol):
    """A server process on its stdin and stdout; its stderr is kept."""

    def __init__(self, ear: Ear) -> None:
        loop = asyncio.get_running_loop()
        self.stderr = bytearray()
        self.exited: asyncio.Future[int] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._ear = ear
        self._transport: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(
        cls, ear: Ear, argv: Sequence[str], *, env: Mapping[str, str] | None, cwd: Path | None
    ) -> "ProcessLink":
        """Start the process in a session of its own, so that it can be ended with its children."""
        loop = asyncio.get_running_loop()
        _, link = await loop.subprocess_exec(
            lambda: cls(ear), *argv, env=env, cwd=cwd, start_new_session=True
        )
        return link

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process().get_pid()

    def write(self, raw: bytes) -> None:
        """Send bytes to stdin; ignored once the process has closed it."""
        pipe = self._pipe(0)
        if pipe is not None and not pipe.is_closing():
            cast("asyncio.WriteTransport", pipe).write(raw)

    def stop_reading(self) -> None:
        """Leave stdout in its pipe."""
        pipe = self._pipe(1)
        if pipe is not None and not pipe.is_closing():
            cast("asyncio.ReadTransport", pipe).pause_reading()

    def resume_reading(self) -> None:
        """Read stdout again."""
        pipe = self._pipe(1)
        if pipe is not None and not pipe.is_closing():
            cast("asyncio.ReadTransport", pipe).resume_reading()

    def close_input(self) -> None:
        """Close stdin."""
        pipe = self._pipe(0)
        if pipe is not None:
            pipe.close()

    async def close(self) -> None:
        """Kill the process group and reap the process."""
        if not self.exited.done():
            with suppress(ProcessLookupError):  # it may end just now
                os.killpg(self.pid, signal.SIGKILL)
            await asyncio.wait({self.exited}, timeout=CLOSE_S)
        self._process().close()
        await asyncio.wait({self._closed}, timeout=CLOSE_S)

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    @override
    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._ear.bytes_came(data)
        else:
            self.stderr += data

    @override
    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._ear.link_ended("the server closed its stdout")

    @override
    def process_exited(self) -> None:
        if not self.exited.done():
            code = self._process().get_returncode()
            self.exited.set_result(-1 if code is None else code)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._ear.link_ended("the server process has ended")
        if not self._closed.done():
            self._closed.set_result(None)

    def _process(self) -> asyncio.SubprocessTransport:
        assert self._transport is not None
        return self._transport

    def _pipe(self, fd: int) -> asyncio.BaseTransport | None:
        return self._process().get_pipe_transport(fd)


class SocketLink(asyncio.Protocol):
    """A connected stream socket, such as one end of a socketpair or a daemon's socket."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def over(cls, ear: Ear, sock: socket) -> "SocketLink":
        """Take over a connected socket."""
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(lambda: cls(ear), sock=sock)
        return link

    @classmethod
    async def connect(cls, ear: Ear, path: Path) -> "SocketLink":
        """Connect to a unix socket."""
        loop = asyncio.get_running_loop()
        _, link = await loop.create_unix_connection(lambda: cls(ear), str(path))
        return link

    def write(self, raw: bytes) -> None:
        """Send bytes; ignored once the connection is gone."""
        if not self._open().is_closing():
            self._open().write(raw)

    def stop_reading(self) -> None:
        """Leave everything in the socket's buffer."""
        if not self._open().is_closing():
            self._open().pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if not self._open().is_closing():
            self._open().resume_reading()

    def close_input(self) -> None:
        """Close the writing half."""
        self._open().write_eof()

    async def close(self) -> None:
        """Drop the connection."""
        self._open().abort()
        await asyncio.wait({self._closed}, timeout=CLOSE_S)

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._ear.bytes_came(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._ear.link_ended("the server closed the connection")
        if not self._closed.done():
            self._closed.set_result(None)

    def _open(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport


class StreamLink:
    """A reader and a writer that somebody else opened; `pump` must run as long as the link is used."""

    def __init__(
        self, ear: Ear, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._ear = ear
        self._reader = reader
        self._writer = writer
        self._may_read = asyncio.Event()
        self._may_read.set()

    async def pump(self) -> None:
        """Bring in bytes until the stream ends."""
        while True:
            await self._may_read.wait()
            raw = await self._reader.read(READ_BYTES)
            if not raw:
                self._ear.link_ended("the server closed the stream")
                return
            self._ear.bytes_came(raw)

    def write(self, raw: bytes) -> None:
        """Send bytes; ignored once the writer is closing."""
        if not self._writer.is_closing():
            self._writer.write(raw)

    def stop_reading(self) -> None:
        """Stop after the read under way; the stream's own limit then holds the sender back."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        """Read again."""
        self._may_read.set()

    def close_input(self) -> None:
        """Close the writing half where there are halves, else the writer."""
        if self._writer.can_write_eof():
            self._writer.write_eof()
        else:
            self._writer.close()

    async def close(self) -> None:
        """Close the writer."""
        self._writer.close()


@asynccontextmanager
async def pumping(link: StreamLink) -> AsyncGenerator[None]:
    """Keep the link's pump running inside the block."""
    async with asyncio.TaskGroup() as tasks:
        pump = tasks.create_task(link.pump())
        try:
            yield
        finally:
            pump.cancel()
