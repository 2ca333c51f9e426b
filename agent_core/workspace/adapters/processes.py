"""Processes on this machine: started in a session of their own, read without blocking, ended as a tree."""

import errno
import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import lowlevel, to_thread

from agent_core.kernel.errors import AccessRefused, FileMissing, WorkspaceError
from agent_core.workspace.adapters.process_input import input_of
from agent_core.workspace.adapters.process_mark import Mark, fresh_mark
from agent_core.workspace.adapters.process_proc import ProcTable
from agent_core.workspace.adapters.process_psutil import PsutilTable
from agent_core.workspace.adapters.process_tree import ProcessTable, Tree, end_tree
from agent_core.workspace.port import Killed, ProcessEnd

CHUNK_BYTES = 65_536
FLOOD_CHUNK_BYTES = 4 * CHUNK_BYTES
FLOOD_PIPE_BYTES = 1_048_576
"""What a pipe holds once a command fills it: a large one saves most of the turns that a flood takes."""
REAP_S = 1.0
REST_BYTES = 1_048_576
"""How much of the output that nobody has read yet is kept when a process is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    popen: "subprocess.Popen[bytes]"
    mark: Mark
    begun_s: float
    output: int


class DiskProcesses:
    """Starts processes on this machine."""

    def __init__(self, *, table: ProcessTable | None = None) -> None:
        """Take the way to find processes; None: the best for this system."""
        self._table = table or (ProcTable() if sys.platform == "linux" else PsutilTable())
        # Of its own: ending a process must not wait until slow reads of files let threads go.
        self._threads = anyio.CapacityLimiter(math.inf)

    async def start(
        self, argv: tuple[str, ...], *, cwd: Path, env: Mapping[str, str], stdin: bytes = b""
    ) -> "DiskProcess":
        """Start a process in a group of its own, with all of its input."""
        started = await to_thread.run_sync(_start, argv, cwd, env, stdin, limiter=self._threads)
        return DiskProcess(started, table=self._table, threads=self._threads)

    async def before_start(self) -> str | None:
        """Do nothing: everything is on the disk already."""
        await lowlevel.checkpoint_if_cancelled()
        return None


class DiskProcess:
    """A running process with its descendants."""

    def __init__(
        self, started: _Started, *, table: ProcessTable, threads: anyio.CapacityLimiter
    ) -> None:
        self._started = started
        self._output: int | None = started.output
        self._chunk_bytes = CHUNK_BYTES
        self._rest = b""
        self._table = table
        self._threads = threads
        # Every turn of the loop that a short command does not need is a good part of what it costs.
        self._ending = anyio.Lock(fast_acquire=True)
        self._waiting = anyio.Lock(fast_acquire=True)
        self._exit = _Exit(started.popen)

    @property
    def pid(self) -> int:
        """The process id of its first process, also its process group."""
        return self._started.popen.pid

    async def read(self) -> bytes:
        """Wait for output and give a chunk; empty when every writer has closed it."""
        await lowlevel.checkpoint_if_cancelled()
        waited = False
        while self._output is not None:
            try:
                data = os.read(self._output, self._chunk_bytes)
            except BlockingIOError:
                try:
                    await anyio.wait_readable(self._output)
                except anyio.ClosedResourceError:
                    break  # it was ended meanwhile
                waited = True
                continue
            if len(data) == CHUNK_BYTES == self._chunk_bytes:
                self._chunk_bytes = FLOOD_CHUNK_BYTES
                _widen(self._output)
            if not data:
                self._close_output()
            elif not waited:
                # A flood must let others run, and nothing of it may be lost.
                await lowlevel.cancel_shielded_checkpoint()
            return data
        rest, self._rest = self._rest, b""
        return rest

    async def wait(self) -> ProcessEnd:
        """Wait for the first process to end; its children may live on."""
        async with self._waiting:
            return await self._exit.wait(self._threads)

    async def end(self, *, grace_s: float) -> Killed:
        """End the whole tree: asked first, killed after the grace. Once begun it is carried through."""
        async with self._ending:
            killed = Killed(pids=(), survivors=())
            if not self._is_alone():
                tree = Tree(
                    table=self._table,
                    first=self.pid,
                    mark=self._started.mark,
                    begun_s=self._started.begun_s,
                    reaped=self._exit.reaped,
                )
                killed = await to_thread.run_sync(
                    lambda: end_tree(tree, grace_s=grace_s), limiter=self._threads
                )
                if self.pid not in killed.survivors:
                    # It shows as dead while threads of it still go, and cannot be reaped before they are gone.
                    with anyio.move_on_after(REAP_S, shield=True):
                        _ = await self.wait()
            self._keep_rest()
            self._exit.reap()
            return killed

    def _is_alone(self) -> bool:
        """Tell at once, where that can be told, that the first process is over and never started another one."""
        return self._exit.is_over and not self._exit.reaped and self._table.is_newest(self.pid)

    def _keep_rest(self) -> None:
        """Take what lies in the pipe and close it: whoever still writes into it is told by the system."""
        if self._output is None:
            return
        parts: list[bytes] = []
        size = 0
        while size < REST_BYTES:
            try:
                part = os.read(self._output, CHUNK_BYTES)
            except BlockingIOError:
                break
            if not part:
                break
            parts.append(part)
            size += len(part)
        self._rest = b"".join(parts)
        self._close_output()

    def _close_output(self) -> None:
        if self._output is not None:
            anyio.notify_closing(self._output)
            os.close(self._output)
            self._output = None


class _Exit:
    """How the first process ends.

    It is not reaped before the tree has been ended: until then its number, which is also that of its group and
    session, cannot come to mean anything else.
    """

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self._popen = popen
        self._end: ProcessEnd | None = None
        self._pidfd = _open_pidfd(popen.pid)

    @property
    def is_over(self) -> bool:
        """Whether its end has been seen."""
        return self._end is not None

    @property
    def reaped(self) -> bool:
        """Whether the system has forgotten the process."""
        return self._popen.returncode is not None

    async def wait(self, threads: anyio.CapacityLimiter) -> ProcessEnd:
        """Wait for the end; one at a time."""
        await lowlevel.checkpoint_if_cancelled()
        while self._end is None:
            if self._pidfd is None:
                _ = await to_thread.run_sync(
                    self._popen.wait, abandon_on_cancel=True, limiter=threads
                )
                self._end = _from_code(self._popen.returncode)
                break
            try:
                await anyio.wait_readable(self._pidfd)
            except anyio.ClosedResourceError:
                continue  # it was reaped meanwhile, which sets the end
            if self._end is None:
                self._end = self._look()
        return self._end

    def reap(self) -> None:
        """Let the system forget the process, if it is over."""
        if self._popen.poll() is None:
            return
        if self._end is None:
            self._end = _from_code(self._popen.returncode)
        if self._pidfd is not None:
            anyio.notify_closing(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _look(self) -> ProcessEnd | None:
        seen = os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if seen is None:
            return None
        if seen.si_code == os.CLD_EXITED:
            return ProcessEnd(exit_code=seen.si_status)
        return ProcessEnd(exit_code=None, signal=seen.si_status)


def _start(argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], stdin: bytes) -> _Started:
    if not cwd.is_dir():
        message = f"Working directory does not exist: {cwd}"
        raise FileMissing(message)
    try:
        reading, writing = os.pipe()
        try:
            with input_of(stdin) as given, fresh_mark() as mark:
                begun_s = time.monotonic()
                marked = mark.environment(env)
                popen = _spawn(argv, cwd=cwd, env=marked, given=given, output=writing)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
    except OSError as error:
        raise _not_started(argv, error) from error
    except ValueError as error:
        message = f"the command cannot be passed on ({error}): leave out NUL and broken characters"
        raise AccessRefused(message) from error
    os.set_blocking(reading, False)
    return _Started(popen=popen, mark=mark, begun_s=begun_s, output=reading)


def _spawn(
    argv: tuple[str, ...], *, cwd: Path, env: Mapping[str, str], given: int, output: int
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - starting what the model asks for is the purpose; the policy judged it
        argv,
        stdin=given,
        stdout=output,
        stderr=output,
        cwd=cwd,
        env=env,
        start_new_session=True,
    )


def _widen(pipe: int) -> None:
    """Let a pipe hold more, where that is possible."""
    if sys.platform == "linux":
        import fcntl  # noqa: PLC0415 - not every system has it

        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, FLOOD_PIPE_BYTES)


def _open_pidfd(pid: int) -> int | None:
    """Open a descriptor that can be waited for; None where the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _from_code(code: int | None) -> ProcessEnd:
    if code is not None and code < 0:
        return ProcessEnd(exit_code=None, signal=-code)
    return ProcessEnd(exit_code=code)


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
