"""Commands that the user runs in a session."""

import logging
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import BashEnded, BashOutput, BashStarted
from agent_core.hooks import (
    CommandBlocked,
    CommandCarried,
    CommandDone,
    CommandTyped,
    GoOn,
    HookRunner,
)
from agent_core.kernel.errors import CommandRefused, SessionBusy, UsageError, WorkspaceError
from agent_core.kernel.text import truncate_tail
from agent_core.kernel.values import Value
from agent_core.messages import BashMessage
from agent_core.session.context import (
    SessionOptions,
    SessionServices,
    WorkspaceContext,
    tool_options,
)
from agent_core.session.history.entries import message_entry
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.runs.slot import ActivitySlot
from agent_core.session.tools.processes import ProcessLog, TrackedProcesses
from agent_core.tools.command import BashCommand

log = logging.getLogger(__name__)


async def ask_command_hooks(
    hooks: HookRunner, command: str, *, root: Path, exclude_from_context: bool
) -> CommandDone | CommandCarried | None:
    """Ask hooks about a command; None: it is run as usual.

    Raises:
        CommandRefused: One of them does not want it, or could not be asked.
    """
    typed = CommandTyped(
        command=command,
        exclude_from_context=exclude_from_context,
        cwd=str(root),
    )
    match await hooks.ask(typed):
        case CommandBlocked(reason=reason):
            raise CommandRefused(reason or "an extension does not want this command to run")
        case (CommandDone() | CommandCarried()) as carried:
            return carried
        case GoOn():
            return None


async def run_hooked_command(
    carried: CommandDone | CommandCarried, command: str, *, show: Callable[[str], None]
) -> CommandDone:
    """Return what became of a command that a hook takes on itself; a function that fails is an end like others."""
    if isinstance(carried, CommandDone):
        if carried.output:
            show(carried.output)
        return carried
    try:
        done = await carried.run(command, show)
    except Exception as error:
        log.warning("a hook could not run a command of the user", exc_info=error)
        return CommandDone(output=f"the extension could not run it: {error}", exit_code=None)
    if not isinstance(done, CommandDone):  # pyright: ignore[reportUnnecessaryIsInstance] - foreign code
        return CommandDone(output=f"the extension gave {done!r:.200} as its end", exit_code=None)
    return done


TOOL = "bash"
"""The tool whose settings hold for the user's commands too."""


class BashResult(Value, frozen=True, kw_only=True):
    """Result of a shell command of the user."""

    output: str
    """The end of what it wrote, with what there is to say about its end."""
    exit_code: int | None
    """None: it was cancelled, ended for time, or killed by a signal."""
    cancelled: bool
    truncated: bool
    full_output: str | None
    """The file with all of the output, when that is more than `output`."""
    deferred: bool
    """It enters the conversation when what goes on is over."""


class _Running(Struct, kw_only=True):
    command: str
    scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)
    asking: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)
    """While hooks are asked whether it may run."""
    over: anyio.Event = msgspec.field(default_factory=anyio.Event)


class UserBash:
    """Runs one command at a time, beside whatever else goes on."""

    def __init__(
        self,
        services: SessionServices,
        *,
        workspace: WorkspaceContext,
        options: SessionOptions,
        recorder: Recorder,
        deferred: DeferredMessages,
        hooks: HookRunner,
        runs: ActivitySlot,
    ) -> None:
        self.processes = ProcessLog()
        """The processes of the user's commands, apart from those of the model's."""
        self._services = services
        self._workspace = workspace
        self._options = options
        self._recorder = recorder
        self._deferred = deferred
        self._hooks = hooks
        self._runs = runs
        self._running: _Running | None = None

    @property
    def is_running(self) -> bool:
        """Return whether a command runs."""
        return self._running is not None

    async def execute(self, command: str, *, exclude_from_context: bool) -> BashResult:
        """Run a command, as `AgentSession.execute_bash` says."""
        if not command.strip():
            message = "the command is empty; name one"
            raise UsageError(message)
        if self._running is not None:
            message = f"the command {self._running.command!r} is running; wait for its end or cancel it first"
            raise SessionBusy(message)
        running = self._running = _Running(command=command)
        try:
            carried: CommandDone | CommandCarried | None = None
            with running.asking:
                carried = await ask_command_hooks(
                    self._hooks,
                    command,
                    root=self._workspace.workspace.root,
                    exclude_from_context=exclude_from_context,
                )
            if carried is not None:
                return await self._elsewhere(
                    running, carried, exclude_from_context=exclude_from_context
                )
            return await self._execute(running, exclude_from_context=exclude_from_context)
        finally:
            self._running = None
            running.over.set()

    async def record(
        self, command: str, done: CommandDone, *, exclude_from_context: bool
    ) -> BashResult:
        """Record a command that ran elsewhere, as `ProgramView.record_bash` says."""
        if not command.strip():
            message = "the command is empty; name one"
            raise UsageError(message)
        self._services.publish(BashStarted(command=command))
        if done.output:
            self._show(done.output)
        return await self._keep(command, _done(done), exclude_from_context=exclude_from_context)

    def cancel(self) -> None:
        """Cancel what runs; `wait` for its end."""
        if self._running is not None:
            self._running.asking.cancel()
            self._running.scope.cancel()

    async def wait(self) -> None:
        """Wait until what runs is over, and kept."""
        if self._running is not None:
            await self._running.over.wait()

    async def _elsewhere(
        self,
        running: _Running,
        carried: CommandDone | CommandCarried,
        *,
        exclude_from_context: bool,
    ) -> BashResult:
        """Complete a command that a hook carries out; its end is recorded and published like that of any other."""
        self._services.publish(BashStarted(command=running.command))
        done: CommandDone | None = None
        try:
            with running.scope:
                done = await run_hooked_command(carried, running.command, show=self._show)
        except anyio.get_cancelled_exc_class():
            # Whoever waited for it is gone: what was begun has an end all the same.
            with anyio.CancelScope(shield=True):
                _ = await self._keep(
                    running.command, _done(None), exclude_from_context=exclude_from_context
                )
            raise
        return await self._keep(
            running.command, _done(done), exclude_from_context=exclude_from_context
        )

    async def _execute(self, running: _Running, *, exclude_from_context: bool) -> BashResult:
        workspace = self._workspace.workspace
        # The user asked for it, so it runs as it would in their terminal: not contained.
        processes = workspace.users_processes or workspace.processes
        command = BashCommand(
            replace(workspace, processes=TrackedProcesses(processes, self.processes)),
            options=tool_options(self._options, TOOL),
            scratch=self._options.scratch,
            show=self._show,
        )
        self._services.publish(BashStarted(command=running.command))
        stale: str | None = None
        try:
            with running.scope:
                stale = await workspace.processes.before_start()
                await command.run(running.command)
        except WorkspaceError as error:
            self._publish_ended(_failed(error))
            raise
        except anyio.get_cancelled_exc_class():
            # Whoever waited for it is gone: what it did has happened all the same.
            with anyio.CancelScope(shield=True):
                _ = await self._keep(
                    running.command,
                    _ended(command, stale, cancelled=True),
                    exclude_from_context=exclude_from_context,
                )
            raise
        ended = _ended(command, stale, cancelled=running.scope.cancelled_caught)
        return await self._keep(running.command, ended, exclude_from_context=exclude_from_context)

    async def _keep(
        self, command: str, ended: BashResult, *, exclude_from_context: bool
    ) -> BashResult:
        message = BashMessage(
            command=command,
            output=ended.output,
            exit_code=ended.exit_code,
            cancelled=ended.cancelled,
            truncated=ended.truncated,
            full_output=ended.full_output,
            exclude_from_context=exclude_from_context,
            at_ms=self._services.clock.now_ms(),
        )
        deferred = self._runs.current is not None
        if deferred:
            await self._deferred.keep(message, flush_at="run")
        else:
            _ = await self._recorder.keep(message_entry(message))
        self._publish_ended(ended)
        return replace(ended, deferred=deferred)

    def _show(self, text: str) -> None:
        self._services.publish(BashOutput(text=text))

    def _publish_ended(self, ended: BashResult) -> None:
        self._services.publish(
            BashEnded(
                exit_code=ended.exit_code,
                output=ended.output,
                cancelled=ended.cancelled,
                truncated=ended.truncated,
                full_output=ended.full_output,
            )
        )


def _ended(command: BashCommand, stale: str | None, *, cancelled: bool) -> BashResult:
    tail = command.tail()
    end = command.end
    parts = [tail.content] if tail.content.strip() else []
    if not cancelled:
        # The model is told a plain exit code by the message itself.
        if command.timed_out or end is None or end.signal is not None:
            parts.append(command.about_end())
        parts += [f"[{note}]" for note in (*command.notes(), *([stale] if stale else []))]
    return BashResult(
        output=parts[0] if len(parts) == 1 else "\n\n".join(part.rstrip("\n") for part in parts),
        exit_code=end.exit_code if end is not None and not cancelled else None,
        cancelled=cancelled,
        truncated=tail.truncated,
        full_output=command.full_output,
        deferred=False,
    )


def _done(done: CommandDone | None) -> BashResult:
    tail = truncate_tail("" if done is None else done.output)
    return BashResult(
        output=tail.content,
        exit_code=None if done is None else done.exit_code,
        cancelled=done is None,
        truncated=tail.truncated,
        full_output=None,
        deferred=False,
    )


def _failed(error: WorkspaceError) -> BashResult:
    return BashResult(
        output=str(error),
        exit_code=None,
        cancelled=False,
        truncated=False,
        full_output=None,
        deferred=False,
    )
