"""The HTTP server of the web front end: its sockets, its limits, its end."""

import asyncio
import os
import secrets
import signal
import socket as sockets
import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent_core.kernel import Clock
from tiller_server.agent_client.daemon_link import Connect, DaemonLink
from tiller_server.process.web_servers import NAME, WebServerRecord, encoded_record
from tiller_server.web.access import TOKEN_BYTES, Access, LoginCodes
from tiller_server.web.guard import Guard
from tiller_server.web.listen_address import ListenAddress
from tiller_server.web.options import WebOptions
from tiller_server.web.routes import WebApp

CLIENT: Final = "Tiller web"
"""Name of the client in the events of a session."""
CONNECTIONS: Final = 64
KEEP_ALIVE_S: Final = 5
END_S: Final = 2
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: on, for 0 s."""
SIGNALS: Final[Sequence[signal.Signals]] = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Config(uvicorn.Config):
    """Configuration of the server, and of what it lacks."""

    head_s: float = 0.0


class _Protocol(H11Protocol):
    """HTTP/1.1 with a limit on the time that the head of a request takes."""

    _late: asyncio.TimerHandle | None = None
    _head_s: float = 0.0

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.app_state: dict[str, object] = {**self.app_state, "abort": self._reset}
        if isinstance(self.config, _Config):
            self._head_s = self.config.head_s
        self._expect_head()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _reset(self) -> None:
        """Drop the connection with a reset; otherwise the system would offer what it holds to a reader that has stopped."""
        socket: sockets.socket = self.transport.get_extra_info("socket")
        with suppress(OSError):  # it was closed meanwhile
            socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, RESET)
        self.transport.abort()

    def _expect_head(self) -> None:
        is_waiting = self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison] - None before the first
        if not is_waiting:
            self._stop_timer()
        elif self._late is None:
            self._late = self.loop.call_later(self._head_s, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _config(guard: Guard, listen_address: ListenAddress, *, head_s: float) -> _Config:
    shown = listen_address.certificate
    config = _Config(
        guard,
        ssl_certfile=None if shown is None else shown.file,
        ssl_keyfile=None if shown is None else shown.key,
        http=_Protocol,
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=END_S,
    )
    config.head_s = head_s
    return config


class WebServer(uvicorn.Server):
    """One server, with its connection to the daemon."""

    def __init__(
        self,
        listener: sockets.socket,
        connect: Connect,
        options: WebOptions,
        *,
        listen_address: ListenAddress,
        show_code: Callable[[str], None],
        clock: Clock,
    ) -> None:
        """Prepare it; `run_web` serves.

        Args:
            listener: Socket that listens.
            connect: Connects to the daemon.
            options: How it is started.
            listen_address: From where it is reached.
            show_code: Shows a code for the login in the terminal.
            clock: Time.
        """
        place: tuple[str, int] = listener.getsockname()[:2]
        self.port: Final = place[1]
        bearer = secrets.token_urlsafe(TOKEN_BYTES)
        origins = listen_address.origins(self.port)
        self.origin: Final = next(iter(origins.values()))
        """Where the page comes from."""
        record = _record(listen_address, self.port, options.token_file(self.port))
        record_file = record.token_file.with_name(NAME.format(port=self.port))
        self._files = {record.token_file: bearer, record_file: encoded_record(record)}
        """Texts that commands of this machine read while it serves."""
        one_off = None if listen_address.needs_code else secrets.token_urlsafe(TOKEN_BYTES)
        self.url: Final = f"{self.origin}/{'login' if one_off is None else f'?token={one_off}'}"
        """Page with the one-off token, or the one that takes a code."""
        self._codes = LoginCodes(show_code, clock=clock) if listen_address.needs_code else None
        self._listener = listener
        self.link: Final = _link(connect, options, clock)
        access = Access(
            port=self.port,
            bearer=bearer,
            one_off=one_off,
            codes=self._codes,
            is_secure=listen_address.is_secure,
            clock=clock,
        )
        self._web = WebApp(self.link, access, options, clock=clock)
        self.is_serving: Final = asyncio.Event()
        """Set when the port is open."""
        self.ended_by: signal.Signals | None = None
        """Signal that ended it."""
        self.guard: Final = Guard(
            self._web.routes(),
            origins=origins,
            public=self.origin if listen_address.is_secure else None,
            access=access,
            limits=options.limits,
            clock=clock,
        )
        super().__init__(_config(self.guard, listen_address, head_s=options.limits.head_s))

    async def run_web(self) -> None:
        """Serve until a signal or `should_exit` ends it. Runs of the daemon go on."""
        for file, text in self._files.items():
            _write_private(file, text)
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(self.link.run()),
                    tasks.create_task(self._web.feeds.run()),
                ]
                try:
                    await self.serve(sockets=[self._listener])
                finally:
                    for task in running:
                        _ = task.cancel()
        finally:
            for file in self._files:
                with suppress(OSError):
                    file.unlink()

    @override
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """End at a signal without raising it again, which would end the process before it has tidied up."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._end_by, number)
        try:
            yield
        finally:
            for number in SIGNALS:
                _ = loop.remove_signal_handler(number)

    def _end_by(self, number: signal.Signals) -> None:
        self.ended_by = number
        self.handle_exit(number, None)

    @override
    async def startup(self, sockets: "list[sockets.socket] | None" = None) -> None:
        """Open the port."""
        await super().startup(sockets)
        if self._codes is not None:
            self._codes.offer()
        self.is_serving.set()

    @override
    async def shutdown(self, sockets: "list[sockets.socket] | None" = None) -> None:
        """End the streams first: they would be waited for."""
        self._web.close()
        await super().shutdown(sockets)


def _link(connect: Connect, options: WebOptions, clock: Clock) -> DaemonLink:
    role = "observer" if options.role == "observer" else "panel"
    return DaemonLink(connect, name=CLIENT, root=options.root, role=role, clock=clock)


def _record(listen_address: ListenAddress, port: int, token_file: Path) -> WebServerRecord:
    host, origin = next(iter(listen_address.origins(port).items()))
    certificate = listen_address.certificate
    return WebServerRecord(
        port=port,
        address=listen_address.local_address,
        origin=origin,
        host=host,
        is_public=listen_address.needs_code,
        token_file=token_file,
        certificate=None if certificate is None else certificate.file.absolute(),
    )


def _write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone may read. Blocking."""
    with suppress(FileNotFoundError):
        path.unlink()
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(made, "w", encoding="utf-8") as file:
        _ = file.write(f"{text}\n")
