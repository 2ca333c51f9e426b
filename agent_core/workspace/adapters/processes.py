"""Processes on this machine: started in a session of their own, read without blocking, ended as a tree."""

import errno
import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import field, replace
from functools import partial
from pathlib import Path

import anyio
from anyio import lowlevel, to_thread

from agent_core.kernel.errors import AccessRefused, FileMissing, WorkspaceError
from agent_core.kernel.records import dataclass
from agent_core.workspace.adapters.process_exit import Exit, KeptExit
from agent_core.workspace.adapters.process_input import Input, input_of, open_input
from agent_core.workspace.adapters.process_kept import end_kept
from agent_core.workspace.adapters.process_mark import Mark, fresh_mark
from agent_core.workspace.adapters.process_output import Output
from agent_core.workspace.adapters.process_proc import ProcTable
from agent_core.workspace.adapters.process_psutil import PsutilTable
from agent_core.workspace.adapters.process_starter import Starter
from agent_core.workspace.adapters.process_tree import ProcessTable, Tree, end_tree
from agent_core.workspace.permission import Needs
from agent_core.workspace.port import NO_NEEDS, Killed, ProcessEnd
from agent_core.workspace.sandbox.keeper import find_shell
from agent_core.workspace.sandbox.values import Launch, Sandbox

REAP_S = 1.0
PARTED = 'e=$1; shift; exec "$@" 2>&"$e" {e}>&-'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    needs: frozenset[Needs]
    stdin: bytes = b""
    talks: bool = False
    """It is spoken with: its input stays open, and its errors do not mix with its output."""
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables that it gets whatever containment takes out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    popen: "subprocess.Popen[bytes]"
    mark: Mark
    begun_s: float
    output: int
    report: int | None
    """What the keeper of a contained command says; None: there is no keeper."""
    launch: Launch
    input: int | None = None
    """What we write into, when it is spoken with."""
    errors: int | None = None


class DiskProcesses:
    """Starts processes on this machine."""

    def __init__(
        self, *, table: ProcessTable | None = None, sandbox: Sandbox | None = None
    ) -> None:
        """Take what the processes work with.

        Args:
            table: How to find processes; None: the best for this system.
            sandbox: What contains them; None: nothing does.
        """
        self._table = table or (ProcTable() if sys.platform == "linux" else PsutilTable())
        self._sandbox = sandbox
        # Of its own: ending a process must not wait until slow reads of files let threads go.
        self._threads = anyio.CapacityLimiter(math.inf)
        self._starter: Starter[_Started] = Starter()

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> "DiskProcess":
        """Start a process in a group of its own, with all of its input."""
        wanted = _Wanted(argv=argv, cwd=cwd, env=env, stdin=stdin, needs=needs)
        started = await to_thread.run_sync(self._start, wanted, limiter=self._threads)
        return DiskProcess(started, table=self._table, threads=self._threads, starter=self._starter)

    async def talk(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        given: Mapping[str, str],
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> "DiskTalk":
        """Start a program in a group of its own, to be spoken with."""
        wanted = _Wanted(argv=argv, cwd=cwd, env=env, given=given, needs=needs, talks=True)
        started = await to_thread.run_sync(self._start, wanted, limiter=self._threads)
        process = DiskProcess(
            started, table=self._table, threads=self._threads, starter=self._starter
        )
        assert started.input is not None and started.errors is not None  # noqa: S101, PT018 - for the type checker
        return DiskTalk(process, Input(started.input), Output(started.errors))

    async def before_start(self) -> str | None:
        """Do nothing: everything is on the disk already."""
        await lowlevel.checkpoint_if_cancelled()
        return None

    def _start(self, wanted: _Wanted) -> _Started:
        if self._sandbox is None:
            return _start(wanted, None)
        sandbox = self._sandbox
        return self._starter.run(lambda: _start(wanted, sandbox))


class DiskProcess:
    """A running process with its descendants."""

    def __init__(
        self,
        started: _Started,
        *,
        table: ProcessTable,
        threads: anyio.CapacityLimiter,
        starter: Starter[_Started],
    ) -> None:
        self._started = started
        # Kept: what it started ends with it.
        self._starter = starter
        self._output = Output(started.output)
        self._table = table
        self._threads = threads
        # Every turn of the loop that a short command does not need is a good part of what it costs.
        self._ending = anyio.Lock(fast_acquire=True)
        self._waiting = anyio.Lock(fast_acquire=True)
        self._is_ended = False
        self._first = Exit(started.popen)
        self._kept = None if started.report is None else KeptExit(self._first, started.report)

    @property
    def pid(self) -> int:
        """The process id of its first process, also its process group."""
        return self._started.popen.pid

    async def read(self) -> bytes:
        """Wait for output and give a chunk; empty when every writer has closed it."""
        return await self._output.read()

    async def wait(self) -> ProcessEnd:
        """Wait for the first process to end; its children may live on."""
        async with self._waiting:
            if self._kept is not None:
                return await self._kept.wait(self._threads)
            return await self._first.wait(self._threads)

    async def end(self, *, grace_s: float) -> Killed:
        """End the whole tree: asked first, killed after the grace. Once begun it is carried through."""
        async with self._ending:
            killed = Killed(pids=(), survivors=())
            if self._is_ended:
                return killed
            if not self._is_alone():
                killed = await self._end_tree(grace_s)
                if self.pid not in killed.survivors:
                    # It shows as dead while threads of it still go, and cannot be reaped before they are gone.
                    with anyio.move_on_after(REAP_S, shield=True):
                        _ = await self.wait()
                        _ = await self._first.wait(self._threads)
            self._output.close()
            self._first.reap()
            self._is_ended = True
            return await self._afterwards(killed)

    async def _end_tree(self, grace_s: float) -> Killed:
        if self._kept is not None and self._kept.was_alone and await self._ends_itself():
            return Killed(pids=(), survivors=())
        tree = Tree(
            table=self._table,
            first=self.pid,
            mark=self._started.mark,
            begun_s=self._started.begun_s,
            reaped=self._first.reaped,
        )
        kept = self._kept
        if kept is None:
            ending = partial(end_tree, tree, grace_s=grace_s)
        else:
            ending = partial(
                end_kept, tree, is_over=kept.is_over, was_alone=kept.was_alone, grace_s=grace_s
            )
        return await to_thread.run_sync(ending, limiter=self._threads)

    async def _ends_itself(self) -> bool:
        """Wait for the end of a namespace in which nothing is left; False when it does not come."""
        with anyio.move_on_after(REAP_S, shield=True) as waiting:
            _ = await self._first.wait(self._threads)
        return not waiting.cancelled_caught

    async def _afterwards(self, killed: Killed) -> Killed:
        """Say what containment stood in the way of; nothing runs any more."""
        kept = self._kept
        if kept is not None:
            kept.close()
            self._output.add(kept.complaint)
        after = self._started.launch.after
        if after is None:
            return killed
        end = (kept or self._first).end
        look = partial(after, self._output.seen, None if end is None else end.exit_code)
        aftermath = await to_thread.run_sync(look, limiter=self._threads)
        return replace(killed, quarantined=aftermath.quarantined, denied=aftermath.denied)

    def _is_alone(self) -> bool:
        """Tell at once, where that can be told, that the first process is over and never started another one."""
        first = self._first
        return first.is_over and not first.reaped and self._table.is_newest(self.pid)


class DiskTalk:
    """A running program that is spoken with."""

    def __init__(self, process: DiskProcess, to_it: Input, errors: Output) -> None:
        self._process = process
        self._input = to_it
        self._errors = errors

    @property
    def pid(self) -> int:
        """The process id of its first process."""
        return self._process.pid

    async def read(self) -> bytes:
        """Wait for output and give a chunk; empty when every writer has closed it."""
        return await self._process.read()

    async def read_errors(self) -> bytes:
        """Wait for what it complains of; empty when every writer has closed that."""
        return await self._errors.read()

    async def write(self, data: bytes) -> None:
        """Write all of it into its input."""
        await self._input.write(data)

    def finish(self) -> None:
        """Say that nothing more comes."""
        self._input.close()

    async def wait(self) -> ProcessEnd:
        """Wait for the first process to end; its children may live on."""
        return await self._process.wait()

    async def end(self, *, grace_s: float) -> Killed:
        """End the whole tree: told first that nothing more comes, then asked, killed after the grace. Idempotent."""
        self._input.close()
        try:
            return await self._process.end(grace_s=grace_s)
        finally:
            self._errors.close()


def _start(wanted: _Wanted, sandbox: Sandbox | None) -> _Started:
    if not wanted.cwd.is_dir():
        message = f"Working directory does not exist: {wanted.cwd}"
        raise FileMissing(message)
    try:
        launch = _launch(wanted, sandbox)
        try:
            launch.starting()
            return _launched(launch, wanted)
        finally:
            launch.started()
    except OSError as error:
        raise _not_started(wanted.argv, error) from error
    except ValueError as error:
        message = f"the command cannot be passed on ({error}): leave out NUL and broken characters"
        raise AccessRefused(message) from error


def _launch(wanted: _Wanted, sandbox: Sandbox | None) -> Launch:
    if sandbox is None:
        return Launch(argv=wanted.argv, env=wanted.env)
    return sandbox.wrap(wanted.argv, cwd=wanted.cwd, env=wanted.env, needs=wanted.needs)


def _launched(launch: Launch, wanted: _Wanted) -> _Started:
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
    return _Started(
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
    at = launch.output_at + 1
    words = (find_shell() or "bash", "-c", PARTED, "parted", str(complaining))
    return (*argv[:at], *words, *argv[at:]), (*passed, complaining), plain


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
