"""Background commands of a session: they go on when the run that started them is over, and end with the session."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import (
    BackgroundEnded,
    BackgroundInfo,
    BackgroundListening,
    BackgroundStarted,
)
from agent_core.events.values import BackgroundEnder
from agent_core.kernel import ItemId, RunId, ToolCallId
from agent_core.kernel.errors import StorageError, ToolError
from agent_core.kernel.text import DEFAULT_MAX_BYTES, plain, truncate_tail
from agent_core.kernel.threads import run_in_thread
from agent_core.messages import CustomMessage, Text
from agent_core.session.context import (
    SessionOptions,
    SessionServices,
    WorkspaceContext,
    tool_options,
)
from agent_core.session.history.entries import BACKGROUND, background_entry
from agent_core.session.history.recorder import Background, Recorder
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.tools.processes import ProcessLog, TrackedProcesses
from agent_core.tools.command import start_bash
from agent_core.tools.command_output import OutputCapture, OutputFile
from agent_core.tools.port import BackgroundCommand, BackgroundPage
from agent_core.workspace import Process, ProcessEnd
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.processes.tcp_ports import listening_ports

MOST_RUNNING: Final = 16
MOST_ENDED: Final = 32
"""How many that ended are still listed and read."""
FIRST_S: Final = 1.0
"""How long a command is waited for that may fail at once."""
GRACE_S: Final = 2.0
"""Between the request to end and the kill."""
CLOSE_GRACE_S: Final = 0.5
END_BOUND_S: Final = 6.0
LOOK_S: Final = 1.0
"""Between an output and the look at the ports."""
SILENT_LOOK_S: Final = 4.0
SILENT_LOOKS: Final = 12
"""So often, and after so long, it is looked again without an output, until there is a port."""
REPORT_BYTES: Final = 2_048
REPORT_LINES: Final = 20


class _Command(Struct, kw_only=True):
    id: str
    text: str
    call: ToolCallId
    process: Process
    output: OutputFile
    read_to: int = 0
    end: ProcessEnd | None = None
    by: BackgroundEnder = "itself"
    wanted: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """Set when it is to end."""
    is_running: bool = True
    over: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """It has ended, and that is in the file."""
    has_more: anyio.Event = msgspec.field(default_factory=anyio.Event)

    @property
    def log(self) -> str:
        return self.output.path or ""

    @property
    def size(self) -> int:
        return self.output.size


class SessionBackground:
    """The background commands of one session."""

    def __init__(
        self,
        services: SessionServices,
        *,
        workspace: WorkspaceContext,
        options: SessionOptions,
        recorder: Recorder,
        deferred: DeferredMessages,
        tasks: Background,
        needs_for: Callable[[ToolCallId], frozenset[Needs]],
        current_run: Callable[[], RunId | None],
        begun: int = 0,
    ) -> None:
        """Create the list of commands, with none running.

        Args:
            services: Ids, time and events.
            workspace: Where commands run.
            options: The settings of the tool `bash`, and the folder of outputs.
            recorder: Writes that a command started or ended.
            deferred: Takes the report for the model.
            tasks: Runs what follows a command, as long as the session is open.
            needs_for: Returns the needs of a call beyond those that it named.
            current_run: Returns the run that goes on.
            begun: How many commands the session has had before: ids are not used again.
        """
        self.processes = ProcessLog()
        """The processes of background commands, apart from those of calls."""
        self._services = services
        self._workspace = workspace
        self._options = options
        self._recorder = recorder
        self._deferred = deferred
        self._tasks = tasks
        self._needs_for = needs_for
        self._current_run = current_run
        self._count = begun
        self._commands: dict[str, _Command] = {}

    @property
    def is_running(self) -> bool:
        """Whether a command runs."""
        return bool(self._running())

    async def start(
        self, command: str, *, call: ToolCallId, needs: frozenset[Needs]
    ) -> BackgroundCommand:
        """Start a command, and give it a moment in which it may fail.

        Raises:
            ToolError: Too many are running, or the log cannot be written.
            WorkspaceError: It cannot be started.
        """
        if len(self._running()) >= MOST_RUNNING:
            message = f"{MOST_RUNNING} commands run in the background, which is the most: stop one that is not needed."
            raise ToolError(message)
        processes = TrackedProcesses(
            self._workspace.workspace.processes,
            self.processes,
            call=call,
            needs=self._needs_for(call),
        )
        output = OutputFile(self._options.scratch)
        await output.create()
        if output.problem is not None:
            message = (
                f"The command was not started, because its log cannot be written in {self._options.scratch!r}: "
                f"{output.problem}. Run it without background, or ask the user to make room."
            )
            raise ToolError(message)
        process = await start_bash(
            command,
            replace(self._workspace.workspace, processes=processes),
            options=tool_options(self._options, "bash"),
            needs=needs,
        )
        one = self._take(command, process, output, call)
        # No await since the start: from here on the task of the session ends the process, whatever becomes of the call.
        self._tasks.start(partial(self._follow, one))
        await self._tell_start(one)
        with anyio.move_on_after(FIRST_S):
            await one.over.wait()
        return await self._shown(one)

    async def adopt(
        self, command: str, process: Process, capture: OutputCapture, *, call: ToolCallId
    ) -> BackgroundCommand:
        """Move a running command to the background; the process belongs to the session from the first moment."""
        one = self._take(command, process, capture.file, call)
        self._workspace.processes.release(process.pid)
        handed_over = anyio.Event()

        async def follow() -> None:
            try:
                _ = await capture.hand_over()
                await self._tell_start(one)
            finally:
                handed_over.set()
                await self._follow(one)

        self._tasks.start(follow)
        await handed_over.wait()
        return await self._shown(one)

    async def list(self) -> Sequence[BackgroundCommand]:
        """Return those that run, and the last ones that ended, oldest first."""
        return [await self._shown(one) for one in self._commands.values()]

    async def read(self, id_: str, *, offset: int | None, wait_s: float) -> BackgroundPage:
        """Return output that was not read yet; waits for some.

        Raises:
            ToolError: There is no such command.
        """
        one = self._named(id_)
        begin = one.read_to if offset is None else offset
        with anyio.move_on_after(wait_s):
            while one.size <= begin and one.is_running:
                await one.has_more.wait()
        begin = min(begin, one.size)
        data = await run_in_thread(_read, one.log, begin)
        one.read_to = begin + len(data)
        text = plain(data.decode("utf-8", "replace"))
        return BackgroundPage(command=await self._shown(one), text=text, next=one.read_to)

    async def stop(self, id_: str, *, by: BackgroundEnder = "model") -> BackgroundCommand:
        """End a command with everything that it started; one that has ended stays as it is.

        Raises:
            ToolError: There is no such command.
        """
        one = self._named(id_)
        if not one.over.is_set():
            one.by = by if not one.wanted.is_set() else one.by
            one.wanted.set()
            with anyio.move_on_after(END_BOUND_S):
                await one.over.wait()
        return await self._shown(one)

    async def close(self) -> None:
        """End all of them, because the session closes."""
        running = self._running()
        for one in running:
            one.by = "session" if not one.wanted.is_set() else one.by
            one.wanted.set()
        with anyio.move_on_after(END_BOUND_S):
            for one in running:
                await one.over.wait()

    def _take(
        self, command: str, process: Process, output: OutputFile, call: ToolCallId
    ) -> _Command:
        self._count += 1
        one = _Command(
            id=f"bg{self._count}", text=command, call=call, process=process, output=output
        )
        self._commands[one.id] = one
        return one

    async def _tell_start(self, one: _Command) -> None:
        _ = await self._recorder.keep(background_entry(one.id, "started", one.text))
        item = self._services.publisher.snapshot.item_of(one.call)
        info = BackgroundInfo(id=one.id, item=ItemId(item), command=one.text, log=one.log)
        self._services.publish(BackgroundStarted(run=self._current_run(), command=info))

    def _running(self) -> Sequence[_Command]:
        return [one for one in self._commands.values() if not one.over.is_set()]

    def _named(self, id_: str) -> _Command:
        one = self._commands.get(id_)
        if one is None:
            there = ", ".join(self._commands) or "none"
            message = f"There is no background command {id_!r}; there are: {there}."
            raise ToolError(message)
        return one

    async def _shown(self, one: _Command) -> BackgroundCommand:
        end = one.end
        return BackgroundCommand(
            id=one.id,
            command=one.text,
            log=one.log,
            log_line=one.output.named("Log"),
            is_log_whole=one.output.problem is None,
            size=one.size,
            is_running=one.is_running,
            exit_code=None if end is None else end.exit_code,
            signal=None if end is None else end.signal,
            ports=await self._ports(one) if one.is_running else (),
        )

    async def _ports(self, one: _Command) -> tuple[int, ...]:
        """Return the ports on which a command listens; none for one of another machine."""
        if self._workspace.workspace.address is not None:
            return ()
        return await run_in_thread(listening_ports, one.process.pid)

    async def _follow(self, one: _Command) -> None:
        """Keep the output of a command until it is over, then end what it left and report it."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._pump, one)
                group.start_soon(self._cancel_when_wanted, one, group.cancel_scope)
                group.start_soon(self._watch_ports, one)
                one.end = await one.process.wait()
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(one)

    async def _cancel_when_wanted(self, one: _Command, scope: anyio.CancelScope) -> None:
        await one.wanted.wait()
        scope.cancel()

    async def _watch_ports(self, one: _Command) -> None:
        """Look at the ports after each output, since servers write when they listen, and some times without one."""
        ports: tuple[int, ...] = ()
        for looks in count():
            await anyio.sleep(LOOK_S)
            now = await self._ports(one)
            if now != ports:
                ports = now
                self._services.publish(BackgroundListening(id=one.id, ports=ports))
            is_late = bool(ports) or looks >= SILENT_LOOKS
            with anyio.move_on_after(None if is_late else SILENT_LOOK_S):
                await one.has_more.wait()

    async def _pump(self, one: _Command) -> None:
        while data := await one.process.read():
            await self._keep(one, data)

    async def _keep(self, one: _Command, data: bytes) -> None:
        await one.output.add(data)
        await one.output.flush()
        has_more, one.has_more = one.has_more, anyio.Event()
        has_more.set()

    async def _end(self, one: _Command) -> None:
        grace_s = CLOSE_GRACE_S if one.by == "session" else GRACE_S
        with anyio.move_on_after(END_BOUND_S):
            _ = await one.process.end(grace_s=grace_s)
            while rest := await one.process.read():
                await self._keep(one, rest)
            if one.end is None:
                one.end = await one.process.wait()
        await one.output.close()
        end = one.end
        # Whoever hears of the end finds it in the file, and the report on its way.
        await self._record_end(one)
        one.is_running = False
        one.has_more.set()
        one.over.set()
        self._services.publish(
            BackgroundEnded(
                id=one.id,
                exit_code=None if end is None else end.exit_code,
                signal=None if end is None else end.signal,
                by=one.by,
            )
        )
        self._forget_old()

    async def _record_end(self, one: _Command) -> None:
        """Write the end, and in one step with it the report to the model: for its next turn, or with the next prompt."""
        ended = background_entry(one.id, "ended", one.text)
        if one.by == "model":
            _ = await self._recorder.keep(ended)
            return
        message = CustomMessage(
            custom_type=BACKGROUND,
            content=(Text(text=await run_in_thread(_report, one)),),
            # Events have told people already.
            display=False,
            details={"id": one.id},
            at_ms=self._services.clock.now_ms(),
        )
        flush_at = "prompt" if self._current_run() is None else "turn"
        with suppress(StorageError):
            await self._deferred.accept(message, flush_at=flush_at, beside=(ended,))

    def _forget_old(self) -> None:
        ended = [one.id for one in self._commands.values() if one.over.is_set()]
        for id_ in ended[:-MOST_ENDED]:
            del self._commands[id_]


def _report(one: _Command) -> str:
    end, who = one.end, {"user": " The user stopped it.", "session": " The session was closed."}
    how = "ended"
    if end is not None:
        how = (
            f"ended with exit code {end.exit_code}"
            if end.signal is None
            else f"was ended by signal {end.signal}"
        )
    tail = truncate_tail(
        plain(_read(one.log, max(0, one.size - REPORT_BYTES)).decode("utf-8", "replace")),
        max_lines=REPORT_LINES,
        max_bytes=REPORT_BYTES,
    ).content.strip()
    last = f" Its last output:\n{tail}" if tail else " It wrote nothing."
    return (
        f"[Report of Tiller, not of the user] The background command {one.id} ($ {one.text}) {how}."
        f"{who.get(one.by, '')} {one.output.named('Log')}.{last}"
    )


def _read(log: str, begin: int) -> bytes:
    """Read at most a page of a log. Blocking."""
    try:
        with Path(log).open("rb") as file:
            _ = file.seek(begin)
            return file.read(DEFAULT_MAX_BYTES)
    except OSError:
        return b""
