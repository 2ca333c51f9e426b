"""Runs of `tiller run` that the daemon starts: each is a process of its own, forked from one that has loaded everything.

The daemon sees neither the command line nor the environment of a run. It passes the connection of the client on to the
template (`cli/run/template.py`), whose child reads the request from it, and then forwards signals and the exit status.
"""

import asyncio
import json
import logging
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Self, cast

from agent_core.kernel import Clock
from tiller_server.daemon.errors import ClientRefused
from tiller_server.lsp.transport.outbox import Sink
from tiller_server.lsp.transport.stdio import InputStream

TEMPLATE: Final = "tiller_server.cli.run.template"
READY: Final = b'{"tiller":"ready"}\n'
FORWARDED: Final = frozenset(
    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGCONT}
    if sys.platform != "win32"
    else ()
)
KILL_AFTER_S: Final = 10.0
"""How long a run whose client has left may settle."""
IDLE_S: Final = 1800.0
"""How long the template is kept without a run; it takes some 70 MB."""
END_S: Final = 5.0
MAX_MESSAGE_BYTES: Final = 4096
INHERITED: Final = frozenset({"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"})
"""Variables of the daemon that the template starts with. A run gets those of its client in their place."""

_log = logging.getLogger(__name__)


class RunProcess:
    """One run: begun when it has read its request, ended when its process has."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.status: int | None = None
        """As `waitpid` reports it; None: the template has ended first."""

    def end(self, status: int | None) -> None:
        """Record the end; idempotent."""
        if not self.ended.is_set():
            self.status = status
            self.begun.set()
            self.ended.set()


class RunTemplate:
    """The process that runs are forked from, seen from the daemon."""

    def __init__(self, process: asyncio.subprocess.Process, sock: socket.socket) -> None:
        """Listen to a template that was just started.

        Args:
            process: The process.
            sock: Its messages; non-blocking, owned from now on.
        """
        self._process = process
        self._socket = sock
        self._next = 0
        self.runs: dict[int, RunProcess] = {}
        self.is_loaded = False
        self.over = asyncio.Event()
        asyncio.get_running_loop().add_reader(sock.fileno(), self._receive)

    @classmethod
    async def start(cls, env: Mapping[str, str]) -> Self:
        """Start the process; it can fork when `is_loaded`.

        Raises:
            OSError: The system does not let us.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)  # noqa: FBT003 - its name says it
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-m", TEMPLATE, str(theirs.fileno())),
                    env={name: text for name, text in env.items() if name in INHERITED},
                    cwd="/",
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
        return cls(process, ours)

    def fork(self, connection: int) -> RunProcess:
        """Start a run for the client at the other end of a connection.

        Raises:
            OSError: The template has ended, or does not read.
        """
        self._next += 1
        number = self._next
        message = json.dumps({"fork": number}).encode()
        _ = socket.send_fds(self._socket, [message], [connection])
        run = self.runs[number] = RunProcess()
        return run

    def send_signal(self, run: RunProcess, number: int) -> None:
        """Send a signal to a run, unless it has ended."""
        for key, other in self.runs.items():
            if other is run:
                self._send({"run": key, "signal": number})

    def _send(self, message: Mapping[str, int]) -> None:
        try:
            _ = self._socket.send(json.dumps(message).encode())
        except OSError as error:
            _log.warning("the process that starts runs cannot be reached (%s)", error.strerror)

    def _receive(self) -> None:
        try:
            data = self._socket.recv(MAX_MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        message = cast("dict[str, int]", json.loads(data))
        if "loaded" in message:
            self.is_loaded = True
        elif "begun" in message and (run := self.runs.get(message["begun"])) is not None:
            run.begun.set()
        elif "ended" in message and (run := self.runs.pop(message["ended"], None)) is not None:
            run.end(message["status"])

    def _lose(self) -> None:
        self.over.set()
        if self._socket.fileno() < 0:
            return
        _ = asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()
        for run in self.runs.values():
            run.end(None)
        self.runs.clear()

    async def close(self) -> None:
        """End the process. Runs that are left get SIGTERM from the system."""
        self._lose()
        try:
            async with asyncio.timeout(END_S):
                _ = await self._process.wait()
        except TimeoutError:
            self._process.kill()
            _ = await self._process.wait()


class RunProcesses:
    """All runs of a daemon, and the template that they are forked from. Used as a context around `serve`."""

    def __init__(self, env: Mapping[str, str], *, clock: Clock) -> None:
        self._env = env
        self._clock = clock
        self._template: RunTemplate | None = None
        self._runs: set[RunProcess] = set()
        self._tasks = asyncio.TaskGroup()
        self._keeping: asyncio.Task[None] | None = None
        self._used_s = 0.0

    @property
    def count(self) -> int:
        """Number of runs that go on."""
        return len(self._runs)

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *why: object) -> None:
        if self._keeping is not None:
            _ = self._keeping.cancel()
        await self._tasks.__aexit__(None, None, None)

    def prepare(self) -> None:
        """Start the template, unless there is one."""
        self._used_s = self._clock.monotonic_s()
        if self._keeping is None or self._keeping.done():
            self._keeping = self._tasks.create_task(self._keep(), name="the template of runs")

    def end_idle(self) -> None:
        """End the template when there was no run for long."""
        is_idle = self._clock.monotonic_s() - self._used_s >= IDLE_S
        if self._template is not None and is_idle and not self._runs:
            self._template.over.set()

    def cancel_all(self) -> None:
        """Cancel all runs; `serve` returns when each has ended."""
        for run in self._runs:
            run.cancelled.set()

    async def _keep(self) -> None:
        """Hold the template for as long as it is used."""
        try:
            template = await RunTemplate.start(self._env)
        except OSError as error:
            _log.warning("runs cannot be started by the daemon (%s)", error.strerror)
            return
        self._template = template
        try:
            _ = await template.over.wait()
        finally:
            self._template = None
            await template.close()

    async def serve(self, reader: InputStream, sink: Sink) -> None:
        """Serve a client of `tiller run` to the end of its run.

        Raises:
            ClientRefused: The template is not loaded yet; the client runs in its own process.
        """
        template = self._template
        if template is None or not template.is_loaded or template.over.is_set():
            self.prepare()
            raise ClientRefused("notReady", "what runs need is being loaded")
        self._used_s = self._clock.monotonic_s()
        if not isinstance(sink, asyncio.StreamWriter):
            raise TypeError(type(sink).__name__)  # only sockets can be passed on
        transport = cast("asyncio.ReadTransport", sink.transport)  # pyright: ignore[reportInvalidCast] - it is both
        # The child reads the request from the same socket: nothing of it may be read here.
        transport.pause_reading()
        sink.write(READY)
        await sink.drain()
        connection = cast("socket.socket", sink.get_extra_info("socket"))
        try:
            run = template.fork(connection.fileno())
        except OSError as error:
            raise ClientRefused("notReady", "the process that starts runs has ended") from error
        self._runs.add(run)
        try:
            _ = await run.begun.wait()
            transport.resume_reading()
            await self._follow(template, run, reader)
        finally:
            self._runs.discard(run)
        if run.status is not None:
            sink.write(json.dumps({"tiller": "ended", "status": run.status}).encode() + b"\n")
            await sink.drain()

    async def _follow(self, template: RunTemplate, run: RunProcess, reader: InputStream) -> None:
        async with asyncio.TaskGroup() as tasks:
            others = (
                tasks.create_task(_forward_signals(template, run, reader)),
                tasks.create_task(self._end_cancelled(template, run)),
            )
            _ = await run.ended.wait()
            for task in others:
                _ = task.cancel()

    async def _end_cancelled(self, template: RunTemplate, run: RunProcess) -> None:
        """End a run that is cancelled: it may settle, as after one Ctrl-C, and is killed when that takes too long."""
        _ = await run.cancelled.wait()
        for number in (signal.SIGCONT, signal.SIGTERM):
            template.send_signal(run, number)
        await self._clock.sleep(KILL_AFTER_S)
        template.send_signal(run, signal.SIGKILL)


async def _forward_signals(template: RunTemplate, run: RunProcess, reader: InputStream) -> None:
    """Forward the signals of the client, one byte each; a client that has left cancels its run."""
    with suppress(OSError):  # it has left all the same
        while data := await reader.read(MAX_MESSAGE_BYTES):
            for number in data:
                if number in FORWARDED:
                    template.send_signal(run, number)
    run.cancelled.set()
