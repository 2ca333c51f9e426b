"""Standard input and output as streams of an event loop, kept from everything else in the process."""

import asyncio
import errno
import os
import queue
import socket
import stat
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, TypeVar

from tiller_server.lsp.transport.outbox import Sink

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of the system that mean: no descriptors or no memory at the moment."""
_STDERR_FD: Final = 2

_T = TypeVar("_T")


class InputStream(Protocol):
    """Where bytes come from. An `asyncio.StreamReader` is one."""

    async def read(self, n: int, /) -> bytes:
        """Return up to n bytes as soon as there are any; b"" at the end."""
        ...


async def stdio_streams(*, stdin_fd: int = 0, stdout_fd: int = 1) -> tuple[InputStream, Sink]:
    """Reserve standard input and output for a protocol; return them as streams.

    Afterwards descriptor 0 is empty and descriptor 1 is standard error: neither a stray `print`
    nor a child process can write into the protocol or read from it. Works with pipes, sockets,
    files and terminals.

    Raises:
        OSError: One of the descriptors is not open.
    """
    if sys.stdout is not None:  # None under pythonw
        sys.stdout.flush()
    wire_in, wire_out = os.dup(stdin_fd), os.dup(stdout_fd)
    _detach(stdin_fd, stdout_fd)
    if _is_one_socket(wire_in, wire_out):
        # One socket for both directions (inetd, socat) must be one transport: a write-only
        # one takes arriving bytes for the peer hanging up.
        os.close(wire_out)
        return await asyncio.open_connection(sock=socket.socket(fileno=wire_in))
    return await _open_reader(wire_in), await _open_sink(wire_out)


def _detach(stdin_fd: int, stdout_fd: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, stdin_fd)
        os.dup2(_STDERR_FD if _is_open(_STDERR_FD) else nothing, stdout_fd)
    finally:
        os.close(nothing)


async def _open_reader(fd: int) -> InputStream:
    if _is_socket(fd):
        return _SocketReader(*await asyncio.open_connection(sock=socket.socket(fileno=fd)))
    if not _is_pollable_pipe(fd):
        return _FileReader(fd)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        partial(asyncio.StreamReaderProtocol, reader), os.fdopen(fd, "rb", buffering=0)
    )
    return reader


async def _open_sink(fd: int) -> Sink:
    if _is_socket(fd):
        _, writer = await asyncio.open_connection(sock=socket.socket(fileno=fd))
        return writer
    if not _is_pollable_pipe(fd):
        return _FileSink(fd)
    loop = asyncio.get_running_loop()
    unused = asyncio.StreamReader()
    transport, protocol = await loop.connect_write_pipe(
        partial(asyncio.StreamReaderProtocol, unused), os.fdopen(fd, "wb", buffering=0)
    )
    return asyncio.StreamWriter(transport, protocol, unused, loop)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _is_socket(fd: int) -> bool:
    return stat.S_ISSOCK(os.fstat(fd).st_mode)


def _is_one_socket(fd: int, other: int) -> bool:
    return _is_socket(fd) and _is_socket(other) and os.path.sameopenfile(fd, other)


def _is_pollable_pipe(fd: int) -> bool:
    # Windows cannot wait for the anonymous pipes that editors use; a thread can.
    return sys.platform != "win32" and stat.S_ISFIFO(os.fstat(fd).st_mode)


class _SocketReader:
    """Reads a socket, and keeps its other half: a writer that is dropped closes the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, n: int, /) -> bytes:
        return await self._reader.read(n)


class _FdThread:
    """Runs blocking calls on one descriptor in order, on a thread that never delays exit."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        # Not a pool: its threads are joined at exit, and a read from a terminal may never end.
        threading.Thread(target=self._work, name=f"tiller-fd-{fd}", daemon=True).start()

    async def run(self, call: Callable[[int], _T]) -> _T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_T] = loop.create_future()

        def job() -> None:
            try:
                settle = partial(_set_result, future, call(self._fd))
            except OSError as error:
                settle = partial(_set_error, future, error)
            loop.call_soon_threadsafe(settle)

        self._jobs.put(job)
        return await future

    def stop(self) -> None:
        self._jobs.put(None)

    def _work(self) -> None:
        try:
            while (job := self._jobs.get()) is not None:
                job()
        except RuntimeError:
            return  # The loop was closed while the call ran: nobody waits for it.
        finally:
            os.close(self._fd)


def _set_result(future: asyncio.Future[_T], result: _T) -> None:
    if not future.done():
        future.set_result(result)


def _set_error(future: asyncio.Future[_T], error: OSError) -> None:
    if not future.done():
        future.set_exception(error)


class _FileReader:
    """Reads a file or a terminal."""

    def __init__(self, fd: int) -> None:
        self._thread = _FdThread(fd)

    async def read(self, n: int, /) -> bytes:
        return await self._thread.run(lambda fd: os.read(fd, n))


class _FileSink:
    """Writes to a file or a terminal."""

    def __init__(self, fd: int) -> None:
        self._thread = _FdThread(fd)
        self._waiting = bytearray()

    def write(self, data: bytes, /) -> None:
        self._waiting += data

    async def drain(self) -> None:
        data, self._waiting = bytes(self._waiting), bytearray()
        await self._thread.run(partial(_write_all, data))

    def close(self) -> None:
        self._thread.stop()

    async def wait_closed(self) -> None:
        return  # `drain` has written everything.


def _write_all(data: bytes, fd: int) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
