"""The process of one user that serves all of their editors."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agent_core.kernel import Clock, SystemClock
from tiller_server import VERSION
from tiller_server.daemon import paths
from tiller_server.daemon.admission.handshake import SPOKEN, Handshake, is_newer
from tiller_server.daemon.admission.listener import (
    AdmissionPolicy,
    BoundSocket,
    SocketListener,
    listen,
    make_token,
)
from tiller_server.daemon.admission.peer import Lineage
from tiller_server.daemon.clients import ServedClients
from tiller_server.daemon.errors import ClientRefused
from tiller_server.daemon.lockfile import Ownership
from tiller_server.daemon.private_dir import private_folder
from tiller_server.daemon.runs import RunProcesses
from tiller_server.lsp.app import App
from tiller_server.lsp.clients.environment import ClientEnvironment
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.jsonrpc.typed_params import make_converter
from tiller_server.lsp.runtime import Runtime
from tiller_server.lsp.transport.outbox import Sink
from tiller_server.lsp.transport.stdio import InputStream
from tiller_server.process.config import ServerConfig

HANDOVER_S: Final = 20.0
POLL_S: Final = 0.05
WARM_UP_AFTER_S: Final = 1.0

_log = logging.getLogger(__name__)

IDLE_S: Final = 1800.0
MOST_BETWEEN_LOOKS_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonFiles:
    """Where the daemon keeps what it is found by."""

    lock: Path
    socket: Path
    token: Path

    @classmethod
    def of(cls, config: ServerConfig) -> "DaemonFiles":
        """Make sure of the folder, and name what is in it. Blocking.

        Raises:
            CannotServe: The folder cannot be used.
            ValueError: The environment names none that could be.
        """
        _ = private_folder(paths.runtime_folder(config.env))
        return cls(
            lock=Path(paths.lock_path(config.env)),
            socket=Path(paths.socket_path(config.env)),
            token=Path(paths.token_path(config.env)),
        )


class Daemon:
    """Serves everybody who comes to the socket, until nobody has come for long or it is told to leave."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        clock: Clock | None = None,
        version: str = VERSION,
        checks: Callable[[AdmissionPolicy], AdmissionPolicy] = lambda usual: usual,
        on_loaded: Callable[[], None] = lambda: None,
        on_leaving: Callable[[], None] = lambda: None,
        prepares_runs: bool = False,
    ) -> None:
        """Create a daemon; nothing is opened yet.

        Args:
            config: The environment of the process: where the user's files are, and how long to stay.
            clock: Time; None: the machine's.
            version: The version that it reports.
            checks: Changes the checks of new connections.
            on_loaded: Called when the agent has been loaded.
            on_leaving: Called once, when it begins to leave.
            prepares_runs: Whether to load what `tiller run` needs before the first one comes.
        """
        self._config = config
        self._clock = clock or SystemClock()
        self._version = version
        self._checks = checks
        self._on_leaving = on_leaving
        self._runtime = Runtime(config, on_loaded=on_loaded)
        self._converter = make_converter()
        self._clients = ServedClients(self._clock)
        self._runs = RunProcesses(config.env, clock=self._clock)
        self._prepares_runs = prepares_runs
        self._leaving = asyncio.Event()
        self.started_ms = self._clock.now_ms()

    def leave(self) -> None:
        """Settle all runs and end `run`."""
        if not self._leaving.is_set():
            self._leaving.set()
            self._on_leaving()

    async def run(self, *, opened: Callable[[], None] = lambda: None) -> bool:
        """Serve to the end; gives False when another process serves already.

        Args:
            opened: Called when clients can come.

        Raises:
            CannotServe: There can be no daemon here.
        """
        files = await asyncio.to_thread(DaemonFiles.of, self._config)
        owned = await self._own(files)
        if owned is None:
            return False
        try:
            await self._serve(files, owned, opened)
        finally:
            await asyncio.to_thread(owned.release)
        return True

    async def _own(self, files: DaemonFiles) -> Ownership | None:
        """Acquire the lock, waiting while a leaving daemon holds it; None when another daemon keeps it."""
        waited_s = 0.0
        while True:
            owned = await asyncio.to_thread(Ownership.take, files.lock)
            if owned is not None or waited_s >= HANDOVER_S:
                return owned
            if await asyncio.to_thread(files.socket.exists):
                return None
            await self._clock.sleep(POLL_S)
            waited_s += POLL_S

    async def _serve(
        self, files: DaemonFiles, owned: Ownership, opened: Callable[[], None]
    ) -> None:
        token = await asyncio.to_thread(make_token, files.token)
        sock = await asyncio.to_thread(listen, files.socket)
        bound = await asyncio.to_thread(BoundSocket, files.socket)
        usual = AdmissionPolicy(
            token=token,
            objection=(await asyncio.to_thread(Lineage)).objection,
            uid=os.geteuid(),
        )
        listener = SocketListener(
            sock, self._checks(usual), handler=self._welcome, clock=self._clock
        )
        async with self._runtime, self._runs, asyncio.TaskGroup() as tasks:
            try:
                listener.open(tasks)
                owned.describe({"pid": os.getpid(), "version": self._version})
                _log.info(
                    "Tiller %s serves at %s, process %d.", self._version, files.socket, os.getpid()
                )
                opened()
                others = (
                    tasks.create_task(self._leave_when_idle(bound)),
                    tasks.create_task(self._warm_up()),
                )
                _ = await self._leaving.wait()
                for task in others:
                    _ = task.cancel()
            finally:
                # First of all: who comes now must not find this one.
                await asyncio.to_thread(_remove, files, bound)
                listener.close()
                self._clients.close_all()
                self._runs.cancel_all()
        _log.info("The daemon has left.")

    async def _warm_up(self) -> None:
        """Load the agent beside the first client, or before it: not while that one waits for its first answer."""
        await self._clock.sleep(WARM_UP_AFTER_S)
        if self._prepares_runs:
            self._runs.prepare()
        try:
            from tiller_server.daemon.warmup import TIMES, rehearse  # noqa: PLC0415 - beside the first client, too

            _ = await self._runtime.agent()
            for _ in range(TIMES):
                if not self._clients.count:
                    await rehearse(self._app(self._runtime.origin))
        except Exception:  # noqa: BLE001 - see below
            # Whoever comes is told what is wrong; nobody is served worse for want of a rehearsal.
            _log.exception("the agent could not be made ready")

    async def _leave_when_idle(self, bound: BoundSocket) -> None:
        now_s = self._clock.monotonic_s
        quiet = IdleTimer(limit_s=idle_limit_s(self._config.env), since_s=now_s())
        while (wait_s := quiet.look(now_s(), is_used=self._is_used())) is not None:
            await self._clock.sleep(wait_s)
            self._runs.end_idle()
            if not self._is_used() and not await asyncio.to_thread(bound.is_there):
                _log.warning(
                    "The socket has been taken away, so nobody finds this daemon: it leaves."
                )
                self.leave()
                return
        _log.info("Nobody has used the daemon for %g s: it leaves.", quiet.limit_s)
        self.leave()

    def is_working(self) -> bool:
        """Return whether something goes on in a session."""
        return self._runtime.working() > 0 or self._runs.count > 0

    def _is_used(self) -> bool:
        return self._clients.count > 0 or self.is_working()

    async def _welcome(self, handshake: Handshake, reader: InputStream, sink: Sink) -> None:
        if handshake.ask not in {None, "run", "acp"}:
            await self._answer(handshake, sink)
            return
        self._check_version(handshake)
        if handshake.ask == "run":
            self._check_same_version(handshake)
            await self._runs.serve(reader, sink)
            return
        await asyncio.to_thread(_check_folders, self._config, handshake)
        env = self._config.env if handshake.env is None else handshake.env
        origin = ClientEnvironment(env=env, cwd=handshake.cwd, pid=handshake.pid)
        if handshake.ask == "acp":
            await self._clients.serve_acp(
                lambda servers: self._app(replace(origin, mcp_servers=servers)),
                handshake,
                reader,
                sink,
                env=env,
            )
        else:
            await self._clients.serve_lsp(self._app(origin), handshake, reader, sink)

    def _app(self, origin: ClientEnvironment) -> App:
        connection = LspConnection("tiller", self._version, converter=self._converter)
        return App(self._runtime, origin=origin, connection=connection)

    def _check_version(self, handshake: Handshake) -> None:
        """Check the version of a client. For a newer one the daemon leaves, unless it is in use.

        Raises:
            Refused: The client is not served, or not by this daemon.
        """
        if self._leaving.is_set():
            raise ClientRefused("leaving", "this daemon is leaving; start another one")
        if handshake.v < SPOKEN:
            raise ClientRefused(
                "version",
                f"this daemon speaks {SPOKEN}, the client {handshake.v}; update the client",
            )
        if handshake.v == SPOKEN and not is_newer(handshake.version, than=self._version):
            return
        if self._is_used():
            why = (
                f"the daemon is Tiller {self._version}, older than this client ({handshake.version}), and is in use by other"
                " editors or runs; it is replaced when they are done, or by `tiller daemon stop`"
            )
            raise ClientRefused("busyOlder", why)
        self.leave()
        raise ClientRefused(
            "leaving",
            f"the daemon was Tiller {self._version} and has made room for {handshake.version}",
        )

    def _check_same_version(self, handshake: Handshake) -> None:
        """Check that a run behaves as it would in the process of its client.

        Raises:
            ClientRefused: The client is of another version.
        """
        if handshake.version != self._version:
            why = f"the daemon is Tiller {self._version}, the client {handshake.version}"
            raise ClientRefused("version", why)

    def _figures(self) -> Mapping[str, float]:
        """Return what only the process knows, for `tiller daemon metrics`."""
        import psutil  # noqa: PLC0415 - only this needs it

        return {
            **self._runtime.figures(),
            "resident_memory_bytes": psutil.Process().memory_info().rss,
            "runs_forked": self._runs.count,
            "outgoing_frames": sum(one.outbox.pending_frames for one in self._clients.lsp),
            "outgoing_bytes": sum(one.outbox.pending_bytes for one in self._clients.lsp),
        }

    async def _answer(self, handshake: Handshake, sink: Sink) -> None:
        # Most clients ask nothing, and the first one waits for what is loaded with this file.
        from tiller_server.daemon.control_replies import answer, status_of  # noqa: PLC0415 - see above

        status = status_of(
            self._runtime,
            version=self._version,
            since_ms=self.started_ms,
            connections=self._clients.count,
            runs=self._runs.count,
        )
        reply = answer(handshake.ask, status, self._figures)
        sink.write(reply.line)
        await sink.drain()
        if reply.leaves:
            self.leave()


def _check_folders(config: ServerConfig, handshake: Handshake) -> None:
    """Keep sessions where the client's environment says they lie, or nowhere.

    Raises:
        Refused: This daemon keeps them elsewhere.
    """
    if handshake.env is None or handshake.env == config.env:
        return
    from agent_core.resources.paths import app_paths  # noqa: PLC0415 - the first client, which started us, has our own

    ours, theirs = app_paths(config.env), app_paths(handshake.env)
    if (ours.config, ours.data) != (theirs.config, theirs.data):
        why = f"this daemon keeps sessions in {ours.data} and settings in {ours.config}, and this client elsewhere"
        raise ClientRefused("otherFolders", why)


def _remove(files: DaemonFiles, bound: BoundSocket) -> None:
    # When the folder was taken away, another daemon may be there by now.
    if bound.is_there():
        for path in (files.socket, files.token):
            path.unlink(missing_ok=True)


@dataclass(slots=True, kw_only=True)
class IdleTimer:
    """How long nothing has gone on."""

    limit_s: float
    since_s: float
    """When something was seen last."""

    def look(self, now_s: float, *, is_used: bool) -> float | None:
        """Record whether the daemon is in use; return the seconds until the next look, None: time to leave."""
        if is_used:
            self.since_s = now_s
        left_s = self.limit_s - (now_s - self.since_s)
        return None if left_s <= 0 else min(left_s, MOST_BETWEEN_LOOKS_S)


def idle_limit_s(env: Mapping[str, str]) -> float:
    """Return how long nobody may use the daemon: `TILLER_DAEMON_IDLE_S`, else half an hour."""
    try:
        given = float(env.get("TILLER_DAEMON_IDLE_S", ""))
    except ValueError:
        return IDLE_S
    return given if given > 0 else IDLE_S
