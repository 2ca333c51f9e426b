"""Socket of the daemon: a client is checked, and then served with its own environment, or refused."""

import asyncio
import json
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from agent_core.kernel import Clock
from tiller_server.daemon.admission.handshake import (
    HANDSHAKE_S,
    Handshake,
    check_token,
    parse_handshake,
    read_handshake,
)
from tiller_server.daemon.admission.peer import Peer, peer_of
from tiller_server.daemon.errors import CannotServe, ClientRefused, HandshakeMissing
from tiller_server.lsp.transport.outbox import Sink
from tiller_server.lsp.transport.stdio import EXHAUSTED, InputStream

OWN: Final = 0o600
BACKLOG: Final = 128
RETRY_S: Final = 1.0
LOG_EVERY_S: Final = 60.0

_log = logging.getLogger(__name__)


class ConnectionHandler(Protocol):
    """Function that serves a connection, once the client is checked."""

    def __call__(self, handshake: Handshake, reader: InputStream, sink: Sink, /) -> Awaitable[None]:
        """Serve it to its end.

        Raises:
            Refused: It is not served after all.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPolicy:
    """How the door looks at who comes."""

    token: str
    objection: Callable[[int], str | None]
    """Returns the reason for which a process is refused, by its id; called on a thread."""
    uid: int
    peer: Callable[[socket.socket], Peer] = peer_of
    within_s: float = HANDSHAKE_S


class SocketListener:
    """Listener that serves each connection in a task of its own; a failure of one does not affect the others."""

    def __init__(
        self,
        sock: socket.socket,
        checks: AdmissionPolicy,
        *,
        handler: ConnectionHandler,
        clock: Clock,
    ) -> None:
        """Create the listener; it accepts no connection yet.

        Args:
            sock: Listening, non-blocking socket; owned from now on.
            checks: Checks that a client must pass.
            handler: Serves a client that has passed the checks.
            clock: Clock for the pause when the system has no descriptors left.
        """
        self._sock = sock
        self._checks = checks
        self._handler = handler
        self._clock = clock
        self._accepting: asyncio.Task[None] | None = None
        self._entering: set[asyncio.Task[None]] = set()

    def open(self, tasks: asyncio.TaskGroup) -> None:
        """Start to accept connections; each is a task of the group."""
        self._accepting = tasks.create_task(self._accept_all(tasks), name="accept connections")

    def close(self) -> None:
        """Stop accepting connections, and cancel those that are still being checked; those being served stay."""
        if self._accepting is not None:
            self._accepting.cancel()
        for task in self._entering:
            task.cancel()

    async def _accept_all(self, tasks: asyncio.TaskGroup) -> None:
        # Not asyncio's own server: without descriptors it tries a hundred times a second for each
        # connection that waits, with a traceback each.
        loop = asyncio.get_running_loop()
        logged_s: float | None = None
        try:
            while True:
                try:
                    sock, _ = await loop.sock_accept(self._sock)
                except ConnectionAbortedError:
                    continue
                except OSError as error:
                    if error.errno not in EXHAUSTED:
                        raise
                    now_s = self._clock.monotonic_s()
                    if logged_s is None or now_s - logged_s >= LOG_EVERY_S:
                        logged_s = now_s
                        _log.error(
                            "No connection can be accepted (%s). Trying again every %g s; close editors or raise `ulimit -n`.",
                            error.strerror,
                            RETRY_S,
                        )
                    await self._clock.sleep(RETRY_S)
                    continue
                task = tasks.create_task(self._admit(sock), name="connection")
                self._entering.add(task)
                task.add_done_callback(self._entering.discard)
        finally:
            self._sock.close()

    async def _admit(self, sock: socket.socket) -> None:
        try:
            reader, writer = await asyncio.open_connection(sock=sock)
        except BaseException:
            sock.close()
            raise
        try:
            handshake, rest = await self._look_at(reader, writer)
            if (task := asyncio.current_task()) is not None:
                self._entering.discard(task)
            await self._handler(handshake, _After(rest, reader), writer)
        except HandshakeMissing as error:
            _log.warning("a connection was closed: it %s", error)
        except ClientRefused as error:
            _log.warning("a client was refused (%s): %s", error.code, error)
            refusal = {"tiller": "refused", "why": str(error), "code": error.code}
            with suppress(OSError):
                writer.write(json.dumps(refusal).encode() + b"\n")
                async with asyncio.timeout(self._checks.within_s):
                    await writer.drain()
        except Exception:  # noqa: BLE001 - the fence of one connection: the others know nothing of it
            _log.exception("a connection ended by a fault of ours")
        finally:
            writer.close()

    async def _look_at(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[Handshake, bytes]:
        checks = self._checks
        peer = checks.peer(writer.get_extra_info("socket"))
        if peer.uid != checks.uid:
            raise ClientRefused("user", f"this daemon serves user {checks.uid}, not {peer.uid}")
        line, rest = await read_handshake(reader, within_s=checks.within_s)
        handshake = parse_handshake(line)
        check_token(handshake, token=checks.token)
        why = None if peer.pid is None else await asyncio.to_thread(checks.objection, peer.pid)
        if why is not None:
            raise ClientRefused("tool", f"what a tool has started is not served: {why}")
        return handshake, rest


class _After:
    """Reads on where the hello line ended."""

    def __init__(self, rest: bytes, reader: InputStream) -> None:
        self._rest = rest
        self._reader = reader

    async def read(self, n: int, /) -> bytes:
        if self._rest:
            data, self._rest = self._rest[:n], self._rest[n:]
            return data
        return await self._reader.read(n)


def listen(path: Path) -> socket.socket:
    """Bind the socket, in the place of one that a daemon before has left. Blocking; only with the lock.

    Raises:
        CannotServe: It cannot be bound.
    """
    sock: socket.socket | None = None
    try:
        path.unlink(missing_ok=True)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(str(path))
        path.chmod(OWN)
        sock.listen(BACKLOG)
    except (OSError, AttributeError) as error:
        if sock is not None:
            sock.close()
        why = getattr(error, "strerror", None) or "this system has no such sockets"
        message = (
            f"the socket {str(path)!r} cannot be made ({why}); tiller lsp --in-process needs none"
        )
        raise CannotServe(message) from error
    sock.setblocking(False)  # noqa: FBT003 - its name says it
    return sock


class BoundSocket:
    """A socket in its folder, told from one that others have put there since. Blocking."""

    def __init__(self, path: Path) -> None:
        """Record the one that is there now."""
        self._path = path
        self._is = _identity(path)

    def is_there(self) -> bool:
        """Return whether clients still find it."""
        return self._is is not None and _identity(self._path) == self._is


def _identity(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        found = path.lstat()
        return found.st_dev, found.st_ino
    return None


def make_token(path: Path) -> str:
    """Write a fresh token for our user's eyes, and give it. Blocking.

    Raises:
        CannotServe: It cannot be written.
    """
    token = secrets.token_hex(32)
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWN)
        with os.fdopen(fd, "wb") as file:
            _ = file.write(token.encode() + b"\n")
        # Never half of one: a client may read at any moment.
        _ = fresh.replace(path)
    except OSError as error:
        message = f"the token {str(path)!r} cannot be written ({error.strerror})"
        raise CannotServe(message) from error
    return token
