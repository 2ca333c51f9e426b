"""Starts the first process of a command, contained or not, or has one run it that was started ahead and waits. Blocking.

To build the namespaces of a contained process takes some ten milliseconds. So another one is started while the model
thinks about the result of the last command: everything in it stands, and only its command is missing.
"""

import errno
import os
import select
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_core.kernel.errors import AccessRefused, FileMissing, WorkspaceError
from agent_core.kernel.values import Value
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.port import NO_NEEDS
from agent_core.workspace.processes.input import input_of, open_input
from agent_core.workspace.processes.mark import ProcessMark, fresh_mark
from agent_core.workspace.processes.namespace import mounts_inside
from agent_core.workspace.processes.starter import ProcessStarter
from agent_core.workspace.sandbox.backends.keeper import (
    MOST_ORDER_BYTES,
    WAITS_S,
    find_shell,
    lacks_mounts,
    order_of,
)
from agent_core.workspace.sandbox.values import Launch, PrestartPlan, Sandbox

PARTED = 'e=$1; shift; exec "$@" 2>&"$e" {e}>&-'
READY_MS = 5_000
"""How long a namespace may take until it is built."""
ENDS_S = 1.0
READY = b"\n"
"""The keeper says so that it waits."""


class LaunchRequest(Value, frozen=True, kw_only=True):
    """Request to start a process."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    needs: frozenset[Needs]
    stdin: bytes = b""
    talks: bool = False
    """It is spoken with: its input stays open, and its errors do not mix with its output."""
    given: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Variables that it gets whatever containment takes out."""


class LaunchedProcess(Value, frozen=True, kw_only=True):
    """A process that runs, with our ends of its pipes."""

    popen: "subprocess.Popen[bytes]"
    mark: ProcessMark
    begun_s: float
    output: int
    report: int | None
    """Descriptor of the reports of a contained command's keeper; None: there is no keeper."""
    launch: Launch
    input: int | None = None
    """Descriptor of the writing end of its input; None unless the process `talks`."""
    errors: int | None = None


def start(
    wanted: LaunchRequest, sandbox: Sandbox | None, *, starter: ProcessStarter | None = None
) -> LaunchedProcess:
    """Start the first process of a command. Blocking.

    Args:
        wanted: The process to start.
        sandbox: Contains the process; None: no containment.
        starter: Has the thread on which this is called; a process that it started ahead may run the command. None: no
            process was started ahead.

    Raises:
        WorkspaceError: The process cannot be started.
    """
    if not wanted.cwd.is_dir():
        message = f"Working directory does not exist: {wanted.cwd}"
        raise FileMissing(message)
    try:
        launch = _launch(wanted, sandbox)
        try:
            started = None if starter is None else _served(launch, wanted, starter)  # decision 0069
            if started is None:
                launch.starting()
                started = _launched(launch, wanted)
            return started
        finally:
            launch.started()
    except OSError as error:
        raise _not_started(wanted.argv, error) from error
    except ValueError as error:
        message = f"the command cannot be passed on ({error}): leave out NUL and broken characters"
        raise AccessRefused(message) from error


class WaitingProcess:
    """A contained process that has no command yet; its keeper waits for one."""

    def __init__(
        self,
        started: LaunchedProcess,
        *,
        conditions: tuple[object, ...],
        order_fd: int,
        starter: ProcessStarter,
    ) -> None:
        """Wrap a started process with its launch conditions, the descriptor for its order, and the starting thread.

        This object closes the descriptor.
        """
        self._started = started
        self._starter = starter
        self._conditions = conditions
        self._order_fd = order_fd
        self._mounts = b""

    def is_ready(self, planned: str) -> bool:
        """Wait until the keeper says that it waits, and look at its mounts; False when it does not come to that, or one lacks."""
        report = self._started.report
        if report is None:
            return False
        poll = select.poll()
        poll.register(report, select.POLLIN)
        with suppress(OSError):
            if poll.poll(READY_MS) and os.read(report, len(READY)) == READY:
                self._mounts = mounts_inside(self._started.popen.pid)
                return not lacks_mounts(self._mounts, planned)
        return False

    def serve(
        self, order: bytes, launch: Launch, starter: ProcessStarter
    ) -> LaunchedProcess | None:
        """Run a command in it; None: it is not as the command needs it, and is to be ended."""
        started = self._started
        if launch.ahead is None or launch.ahead.conditions != self._conditions:
            return None
        if self._starter is not starter:
            return None  # it ends with another thread than the command must
        if time.monotonic() - started.begun_s > WAITS_S / 2:
            return None  # it is about to end by itself
        with suppress(OSError):
            # A mount whose place somebody has moved or replaced since then is elsewhere in the table, or gone from it.
            if mounts_inside(started.popen.pid) != self._mounts:
                return None
            # In one piece: less than a pipe takes. Of a part nothing would be run.
            _ = os.write(self._order_fd, order)
            os.close(self._order_fd)
            return replace(started, launch=launch)
        return None

    def end(self) -> None:
        """End it unused. Blocking."""
        started = self._started
        # Its keeper then ends, and the namespace with it.
        os.close(self._order_fd)
        try:
            _ = started.popen.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            started.popen.kill()
            _ = started.popen.wait()
        for descriptor in (started.output, started.report):
            if descriptor is not None:
                os.close(descriptor)


def start_ahead(ahead: PrestartPlan, starter: ProcessStarter) -> None:
    """Start a process for a later command, where none waits. Blocking; on the thread of the starter."""
    with suppress(OSError):
        ahead.slot.fill(lambda: _waiting(ahead, starter))


def _served(
    launch: Launch, wanted: LaunchRequest, starter: ProcessStarter
) -> LaunchedProcess | None:
    """Run a command in the process that was started ahead; None: there is none that serves."""
    if launch.ahead is None or wanted.stdin:
        return None
    order = order_of(wanted.argv, cwd=wanted.cwd, key=launch.report_key)
    if len(order) > MOST_ORDER_BYTES:
        return None
    waiting = launch.ahead.slot.take()
    if not isinstance(waiting, WaitingProcess):
        return None
    started = waiting.serve(order, launch, starter)
    if started is None:
        starter.post(waiting.end)
    return started


def _waiting(ahead: PrestartPlan, starter: ProcessStarter) -> WaitingProcess | None:
    """Start a process that waits; None: its namespace was not built as planned.

    Raises:
        OSError: It could not be started.
    """
    launch = ahead.launch()
    order_fd = launch.order_fd
    if order_fd is None:
        return None
    with ExitStack() as stack:
        stack.callback(os.close, order_fd)
        stack.callback(launch.started)
        launch.starting()
        started = _launched(launch, LaunchRequest(argv=(), cwd=Path("/"), env={}, needs=NO_NEEDS))
        launch.started()
        _ = stack.pop_all()
    waiting = WaitingProcess(
        started, conditions=ahead.conditions, order_fd=order_fd, starter=starter
    )
    if waiting.is_ready(ahead.planned):
        return waiting
    waiting.end()
    return None


def _launch(wanted: LaunchRequest, sandbox: Sandbox | None) -> Launch:
    if sandbox is None:
        return Launch(argv=wanted.argv, env=wanted.env)
    return sandbox.wrap(wanted.argv, cwd=wanted.cwd, env=wanted.env, needs=wanted.needs)


def _launched(launch: Launch, wanted: LaunchRequest) -> LaunchedProcess:
    with ExitStack() as ours, ExitStack() as theirs:
        reading, writing = _pipe(ours, theirs)
        argv, passed = launch.argv, launch.pass_fds
        report, plain = None, writing
        if launch.output_at is not None:
            report, plain = _pipe(ours, theirs)
            argv = (*argv[: launch.output_at], str(writing), *argv[launch.output_at + 1 :])
            passed = (*passed, writing)
        to_it, errors = None, None
        if wanted.talks:
            given, to_it = open_input(ours, theirs)
            errors, complaining = _pipe(ours, theirs)
            argv, passed, theirs_errors = _apart(argv, launch, passed, plain, complaining)
        else:
            given, theirs_errors = theirs.enter_context(input_of(wanted.stdin)), plain
        with fresh_mark() as mark:
            begun_s = time.monotonic()
            popen = subprocess.Popen(  # noqa: S603 - starting what the model asks for is the purpose; the policy judged it
                argv,
                stdin=given,
                stdout=plain,
                stderr=theirs_errors,
                cwd=wanted.cwd,
                env=mark.environment({**launch.env, **wanted.given}),
                start_new_session=True,
                pass_fds=passed,
            )
        _ = ours.pop_all()
    return LaunchedProcess(
        popen=popen,
        mark=mark,
        begun_s=begun_s,
        output=reading,
        report=report,
        launch=launch,
        input=to_it,
        errors=errors,
    )


def _apart(
    argv: tuple[str, ...], launch: Launch, passed: tuple[int, ...], plain: int, complaining: int
) -> tuple[tuple[str, ...], tuple[int, ...], int]:
    """Keep what a program complains of apart from its output; gives the words, descriptors and errors to start with."""
    if launch.output_at is None:
        return argv, passed, complaining
    # A keeper lets both go where the output goes, so the program is started by a shell that parts them again.
    at = launch.command_at
    wrapper_argv = (find_shell() or "bash", "-c", PARTED, "parted", str(complaining))
    return (*argv[:at], *wrapper_argv, *argv[at:]), (*passed, complaining), plain


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    """Open a pipe that we read without blocking."""
    reading, writing = os.pipe()
    ours.callback(os.close, reading)
    theirs.callback(os.close, writing)
    os.set_blocking(reading, False)
    return reading, writing


def _not_started(argv: tuple[str, ...], error: OSError) -> WorkspaceError:
    code = errno.errorcode.get(error.errno or 0, str(error.errno))
    match error.errno:
        case errno.ENOENT:
            return FileMissing(f"Program not found: {argv[0]} ({code})")
        case errno.E2BIG:
            size = sum(len(word) for word in argv)
            return AccessRefused(
                f"The command is too long ({size} characters, {code}): write it to a file and run that"
            )
        case _:
            return AccessRefused(f"Cannot start {argv[0]}: {error.strerror} ({code})")
