"""The loop of `tiller rpc`: lines of the client in, responses and events out."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from agent_core.events import EventEnvelope
from agent_core.kernel import Clock, JsonObject, JsonValue
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.json import decode, encode, is_object
from agent_core.kernel.values import Value
from tiller_server.agent_client.connection import (
    READ_BYTES,
    AgentClient,
    AgentRefused,
    InputStream,
    Sink,
)
from tiller_server.agent_client.lines import JsonLines, LineTooLong
from tiller_server.rpc.commands import configuration, runs, sessions
from tiller_server.rpc.commands.context import Handler, RpcContext
from tiller_server.rpc.dialogs import Dialogs, Reply
from tiller_server.rpc.files import session_of
from tiller_server.rpc.projector import RecordProjector
from tiller_server.rpc.records import PiRelease
from tiller_server.rpc.session import RpcSession

HANDLERS: Final[Mapping[str, Handler]] = {
    **runs.HANDLERS,
    **configuration.HANDLERS,
    **sessions.HANDLERS,
}
"""Every command of pi 1.5.2; those of 0.73.1 are among them."""
WAITING_BYTES: Final = 64 * 1024 * 1024
"""Output that may wait for a client that does not read; beyond it the client is left."""
ANSWERED_FIRST: Final = frozenset({"prompt", "steer", "follow_up"})
"""Commands whose response comes before the events that they cause."""
LASTING: Final = frozenset({"bash", "compact"})
"""Commands that a client which leaves does not wait for."""
LAST_ANSWERS_S: Final = 5.0
"""How long a client that has closed its output still gets the responses to its last commands."""


class RpcOptions(Value, frozen=True, kw_only=True):
    """Options of the command line."""

    root: Path
    """The workspace."""
    folders: tuple[Path, ...] = ()
    """More folders of the workspace."""
    sessions: Path
    """Folder of the session files."""
    compat: PiRelease = "1.5"
    session: str = "new"
    """Session to open: an id, a path, `latest` or `new`."""
    config: Mapping[str, JsonValue] = {}
    """Configuration to apply to it."""
    title: str | None = None
    is_kept: bool = True
    """False: the session is deleted at the end."""
    is_trusted: bool = False
    """The user trusts the workspace as it is."""
    agent: Mapping[str, JsonValue] = {}
    """More of `initializationOptions.agent`."""


class RpcOutput:
    """Records for the client: one line each, sent at once."""

    def __init__(self, sink: Sink, *, limit_bytes: int = WAITING_BYTES) -> None:
        """Prepare it; `write` has to run.

        Args:
            sink: Standard output.
            limit_bytes: Output that may wait for a client that does not read.
        """
        self._sink = sink
        self._limit_bytes = limit_bytes
        self._waiting = bytearray()
        self._wake = asyncio.Event()
        self._held: list[JsonObject] = []
        self._holders = 0
        self._lost = asyncio.Event()

    def respond(self, record: JsonObject) -> None:
        """Send a response. Nothing more is kept for a client that does not read."""
        if len(self._waiting) > self._limit_bytes:
            self._lost.set()
            return
        self._waiting += encode(record) + b"\n"
        self._wake.set()

    def show(self, records: Sequence[JsonObject]) -> None:
        """Send events; while a response must come first they are held back."""
        if self._holders:
            self._held += records
            return
        for record in records:
            self.respond(record)

    def hold(self) -> None:
        """Hold back events until `let_go`."""
        self._holders += 1

    def let_go(self) -> None:
        """Send what was held back, when nothing else holds it."""
        self._holders -= 1
        if not self._holders:
            held, self._held = self._held, []
            self.show(held)

    async def write(self) -> None:
        """Write what is sent, until the client has gone."""
        with suppress(OSError):
            while True:
                _ = await self._wake.wait()
                self._wake.clear()
                await self.flush()
        self._lost.set()

    async def lost(self) -> None:
        """Wait until the client has gone, or does not read any more."""
        _ = await self._lost.wait()

    async def flush(self) -> None:
        """Write what waits.

        Raises:
            OSError: The client has gone.
        """
        data, self._waiting = bytes(self._waiting), bytearray()
        if data:
            self._sink.write(data)
            await self._sink.drain()


class RpcServer:
    """One client and its session."""

    def __init__(
        self, client: AgentClient, sink: Sink, options: RpcOptions, *, clock: Clock
    ) -> None:
        """Prepare it.

        Args:
            client: The connection to the server of `agent/*`.
            sink: Standard output.
            options: Options of the command line.
            clock: Time.
        """
        self._client = client
        self._options = options
        self._clock = clock
        self._output = RpcOutput(sink)
        self._projector = RecordProjector(options.compat)
        self._dialogs = Dialogs(clock)
        self._commands: set[asyncio.Task[None]] = set()
        self._stopped = asyncio.Event()
        self.has_begun = False
        """Whether the server of `agent/*` has accepted this client."""
        self._switching: asyncio.Task[None] | None = None
        """The command that puts another session in context; those after it wait for it."""

    async def serve(self, reader: InputStream) -> None:
        """Serve the client until it closes its output, or does not read ours.

        Raises:
            AgentRefused: No session can be opened, or the server has gone.
            UsageError: The session that the options name does not exist.
        """
        failure: TillerError | None = None
        async with asyncio.TaskGroup() as tasks:
            session = RpcSession(
                self._client,
                folders=(self._options.root, *self._options.folders),
                on_event=self._see,
            )
            context = RpcContext(session, sessions=self._options.sessions)
            try:
                await self._serve(context, reader, tasks)
            except TillerError as error:
                failure = error  # raised below, outside of the group that would wrap it
            finally:
                session.close()
                for task in self._commands:
                    _ = task.cancel()
        if failure is not None:
            raise failure

    async def _serve(
        self, context: RpcContext, reader: InputStream, tasks: asyncio.TaskGroup
    ) -> None:
        await context.session.connect(self._options.agent)
        self.has_begun = True
        await self._open(context)
        stopped = tasks.create_task(self._wait_stopped())
        lost = tasks.create_task(self._output.lost())
        writing = tasks.create_task(self._output.write())
        reading = tasks.create_task(self._read(reader, context, tasks))
        try:
            context.session.show_current(self._clock.now_ms())
            ends = (reading, lost, stopped, context.session.over)
            _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if context.session.over.done():
                raise AgentRefused(context.session.over.result())
            quick = [one for one in self._commands if one.get_name() not in LASTING]
            if quick and not lost.done():
                _ = await asyncio.wait(quick, timeout=LAST_ANSWERS_S)
            if not self._options.is_kept:
                await context.session.delete()
        finally:
            for task in (reading, writing, lost, stopped):
                _ = task.cancel()
            with suppress(OSError), anyio.move_on_after(LAST_ANSWERS_S):
                await self._output.flush()

    def stop(self) -> None:
        """End `serve` as if the client had left."""
        self._stopped.set()

    async def _wait_stopped(self) -> None:
        _ = await self._stopped.wait()

    async def _open(self, context: RpcContext) -> None:
        options = self._options
        more: dict[str, JsonValue] = {}
        if options.config:
            more["config"] = options.config
        if options.title is not None:
            more["title"] = options.title
        name = await anyio.to_thread.run_sync(
            session_of, options.sessions, options.session, options.root
        )
        await context.session.open(name, **more)
        if options.is_trusted:
            folder = {"folder": options.root.as_uri(), "trusted": True}
            self._client.notify("agent/trust", {"items": [folder]})
        self._start(context.session)

    def _start(self, session: RpcSession) -> None:
        """Read the events of the session that is in context now."""
        self._dialogs.clear()
        self._projector = RecordProjector(self._options.compat)
        self._projector.start(thinking=session.state.config.thinking, queue=session.state.queue)

    async def _read(
        self, reader: InputStream, context: RpcContext, tasks: asyncio.TaskGroup
    ) -> None:
        lines = JsonLines()
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                lines.feed(data)
                while (line := self._next(lines)) is not None:
                    self._take(line, context, tasks)
            if (line := lines.last()) is not None:
                self._take(line, context, tasks)

    def _next(self, lines: JsonLines) -> bytes | None:
        while True:
            try:
                return lines.take()
            except LineTooLong:
                self._refuse_line("the line is longer than 32 MiB")

    def _take(self, line: bytes, context: RpcContext, tasks: asyncio.TaskGroup) -> None:
        """Begin the command of a line."""
        try:
            command = decode(line)
        except ValueError as error:
            self._refuse_line(str(error))
            return
        if not is_object(command):
            self._refuse_line("a command must be a JSON object")
            return
        if command.get("type") == "extension_ui_response":
            reply, shown = self._dialogs.answered(command)
            self._output.show(shown)
            if reply is not None:
                self._started("reply", self._reply(reply), tasks)
            return
        name = command.get("type")
        kind = name if isinstance(name, str) else encode(name).decode()
        if kind in ANSWERED_FIRST:
            self._output.hold()
        task = self._started(kind, self._run(kind, command, context, self._switching), tasks)
        if kind in sessions.SWITCHES:
            self._switching = task

    def _started(
        self, name: str, work: Coroutine[None, None, None], tasks: asyncio.TaskGroup
    ) -> asyncio.Task[None]:
        task = tasks.create_task(work, name=name)
        self._commands.add(task)
        task.add_done_callback(self._commands.discard)
        return task

    async def _reply(self, reply: Reply) -> None:
        # One that comes after another answer, or is not allowed, changes nothing.
        with suppress(AgentRefused):
            _ = await self._client.request(reply.method, reply.params)

    async def _run(
        self,
        name: str,
        command: JsonObject,
        context: RpcContext,
        switching: "asyncio.Task[None] | None",
    ) -> None:
        """Run a command and send its response."""
        if switching is not None:
            _ = await asyncio.wait([switching])
        if name == "bash":
            self._projector.bash_id = command.get("id")
        before = context.session.id
        try:
            outcome: JsonObject = {"success": True, **await self._outcome(name, command, context)}
        except (TillerError, OSError) as error:
            outcome = {"success": False, "error": str(error)}
        identity: JsonObject = {"id": command["id"]} if "id" in command else {}
        self._output.respond({**identity, "type": "response", "command": name, **outcome})
        if context.session.id != before:
            self._start(context.session)
            context.session.show_current(self._clock.now_ms())
        if name in ANSWERED_FIRST:
            self._output.let_go()

    async def _outcome(self, name: str, command: JsonObject, context: RpcContext) -> JsonObject:
        handler = HANDLERS.get(name)
        if handler is None:
            message = f"Unknown command: {name}"
            raise UsageError(message)
        outcome = await handler(context, command)
        is_bare = self._options.compat != "1.5" and name in ANSWERED_FIRST
        return {} if is_bare else outcome

    def _see(self, stamped: EventEnvelope) -> None:
        """Show an event."""
        self._output.show([*self._projector.project(stamped), *self._dialogs.see(stamped.event)])

    def _refuse_line(self, why: str) -> None:
        error = f"Failed to parse command: {why}"
        self._output.respond(
            {"type": "response", "command": "parse", "success": False, "error": error}
        )
