"""Processes on this machine: started in a session of their own, read without blocking, ended as a tree."""

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio
from anyio import lowlevel
from msgspec.structs import replace

from agent_core.kernel.threads import run_in_thread
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.port import NO_NEEDS, KillReport, ProcessEnd
from agent_core.workspace.processes.exit import Exit, KeptExit
from agent_core.workspace.processes.mark import MARK, ProcessMark, limit_of
from agent_core.workspace.processes.proc_table import ProcTable
from agent_core.workspace.processes.starter import ProcessStarter
from agent_core.workspace.sandbox.values import Sandbox

if TYPE_CHECKING:
    from agent_core.workspace.processes.input import ProcessInput
    from agent_core.workspace.processes.launch import LaunchedProcess, LaunchRequest
    from agent_core.workspace.processes.output import ProcessOutput
    from agent_core.workspace.processes.tree import Member, ProcessTable


REAP_S = 1.0


class DiskProcesses:
    """Starts processes on this machine."""

    def __init__(
        self,
        *,
        table: "ProcessTable | None" = None,
        sandbox: Sandbox | None = None,
        ahead: Literal["next", "none"] = "next",
    ) -> None:
        """Create the starter of processes; no process is started yet.

        Args:
            table: Finds processes; None: the best table for this system.
            sandbox: Contains the processes; None: no containment.
            ahead: Whether a contained process is kept ready for the next command. It is ended with the sandbox, which
                keeps one at most.
        """
        self._ahead = ahead
        self._table = table or (ProcTable() if sys.platform == "linux" else PsutilTable())
        self._sandbox = sandbox
        self._starter = ProcessStarter()

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
        from agent_core.workspace.processes.launch import LaunchRequest, start_ahead  # noqa: PLC0415 - at first use

        wanted = LaunchRequest(argv=argv, cwd=cwd, env=env, stdin=stdin, needs=needs)
        started = await run_in_thread(self._start, wanted)
        ahead = started.launch.ahead
        if ahead is not None and self._ahead == "next":
            # Now, while the command runs; before, it would keep the interpreter from going on with it.
            self._starter.post(partial(start_ahead, ahead, self._starter))
        return DiskProcess(started, table=self._table, starter=self._starter)

    async def talk(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        given: Mapping[str, str],
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> "DiskInteractiveProcess":
        """Start a program in a group of its own, to be spoken with."""
        from agent_core.workspace.processes.input import ProcessInput  # noqa: PLC0415 - at first use
        from agent_core.workspace.processes.launch import LaunchRequest  # noqa: PLC0415 - at first use
        from agent_core.workspace.processes.output import ProcessOutput  # noqa: PLC0415 - at first use

        wanted = LaunchRequest(argv=argv, cwd=cwd, env=env, given=given, needs=needs, talks=True)
        started = await run_in_thread(self._start, wanted)
        process = DiskProcess(started, table=self._table, starter=self._starter)
        assert started.input is not None and started.errors is not None  # noqa: S101, PT018 - for the type checker
        return DiskInteractiveProcess(
            process, ProcessInput(started.input), ProcessOutput(started.errors)
        )

    async def before_start(self) -> str | None:
        """Do nothing: everything is on the disk already."""
        await lowlevel.checkpoint_if_cancelled()
        return None

    def _start(self, wanted: "LaunchRequest") -> "LaunchedProcess":
        from agent_core.workspace.processes.launch import start  # noqa: PLC0415 - at first use

        if self._sandbox is None:
            return start(wanted, None)
        sandbox = self._sandbox
        starter = None if self._ahead == "none" or wanted.talks else self._starter
        return self._starter.run(lambda: start(wanted, sandbox, starter=starter))


class DiskProcess:
    """A running process with its descendants."""

    def __init__(
        self,
        started: "LaunchedProcess",
        *,
        table: "ProcessTable",
        starter: ProcessStarter,
    ) -> None:
        from agent_core.workspace.processes.output import ProcessOutput  # noqa: PLC0415 - at first use

        self._started = started
        # Kept: what it started ends with it.
        self._starter = starter
        self._output = ProcessOutput(started.output)
        self._table = table
        # Every turn of the loop that a short command does not need is a good part of what it costs.
        self._ending = anyio.Lock(fast_acquire=True)
        self._waiting = anyio.Lock(fast_acquire=True)
        self._is_ended = False
        self._first = Exit(started.popen)
        self._kept = (
            None
            if started.report is None
            else KeptExit(self._first, started.report, key=started.launch.report_key)
        )

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
                return await self._kept.wait()
            return await self._first.wait()

    async def end(self, *, grace_s: float) -> KillReport:
        """End the whole tree: asked first, killed after the grace. Once begun it is carried through."""
        async with self._ending:
            killed = KillReport(pids=(), survivors=())
            if self._is_ended:
                return killed
            if not self._is_alone():
                killed = await self._end_tree(grace_s)
                if self.pid not in killed.survivors:
                    # It shows as dead while threads of it still go, and cannot be reaped before they are gone.
                    with anyio.move_on_after(REAP_S, shield=True):
                        _ = await self.wait()
                        _ = await self._first.wait()
            self._output.close()
            self._first.reap()
            self._is_ended = True
            return await self._afterwards(killed)

    async def _end_tree(self, grace_s: float) -> KillReport:
        from agent_core.workspace.processes.namespace import end_kept  # noqa: PLC0415 - at first use
        from agent_core.workspace.processes.tree import ProcessTree, end_tree  # noqa: PLC0415 - at first use

        if self._kept is not None and self._kept.was_alone and await self._ends_itself():
            return KillReport(pids=(), survivors=())
        tree = ProcessTree(
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
        return await run_in_thread(ending)

    async def _ends_itself(self) -> bool:
        """Wait for the end of a namespace in which nothing is left; False when it does not come."""
        with anyio.move_on_after(REAP_S, shield=True) as waiting:
            _ = await self._first.wait()
        return not waiting.cancelled_caught

    async def _afterwards(self, killed: KillReport) -> KillReport:
        """Return what containment stood in the way of; nothing runs any more."""
        kept = self._kept
        if kept is not None:
            kept.close()
            self._output.add(kept.complaint)
        after = self._started.launch.after
        if after is None:
            return killed
        end = (kept or self._first).end
        look = partial(after, self._output.seen, None if end is None else end.exit_code)
        aftermath = await run_in_thread(look)
        return replace(killed, quarantined=aftermath.quarantined, denied=aftermath.denied)

    def _is_alone(self) -> bool:
        """Return whether the first process is over and surely never started another one. Does not block."""
        first = self._first
        return first.is_over and not first.reaped and self._table.is_newest(self.pid)


class DiskInteractiveProcess:
    """A running program that is spoken with."""

    def __init__(
        self, process: DiskProcess, to_it: "ProcessInput", errors: "ProcessOutput"
    ) -> None:
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
        """Report that nothing more comes."""
        self._input.close()

    async def wait(self) -> ProcessEnd:
        """Wait for the first process to end; its children may live on."""
        return await self._process.wait()

    async def end(self, *, grace_s: float) -> KillReport:
        """End the whole tree: told first that nothing more comes, then asked, killed after the grace. Idempotent."""
        self._input.close()
        try:
            return await self._process.end(grace_s=grace_s)
        finally:
            self._errors.close()


class PsutilTable:
    """Slower than reading /proc; psutil is imported when something is to be ended, not before."""

    def is_newest(self, pid: int) -> bool:
        """Return False: the newest process is unknown."""
        _ = pid
        return False

    def living(self, *, first: int, age_s: float) -> "Mapping[int, Member]":
        """Return the living processes, whatever their age."""
        import psutil  # noqa: PLC0415 - slow to import

        from agent_core.workspace.processes.tree import Member  # noqa: PLC0415 - at first use

        _ = first, age_s
        found: dict[int, Member] = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError), process.oneshot():
                # A process whose first thread has ended looks dead, and is not while others go on.
                if process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1:
                    found[process.pid] = Member(
                        process.pid,
                        started=process.create_time(),
                        parent=process.ppid() or 0,
                        session=os.getsid(process.pid),
                    )
        return found

    def parent(self, pid: int) -> int | None:
        """Return the parent of a process that lives or is a zombie; None: it is gone, or not visible."""
        import psutil  # noqa: PLC0415 - slow to import

        with suppress(psutil.Error, OSError):
            return psutil.Process(pid).ppid()
        return None

    def carries(self, pid: int, mark: ProcessMark) -> Literal["limit", "variable"] | None:
        """Return how a process carries a mark: by limit or by environment variable; None: not, or not visibly."""
        import psutil  # noqa: PLC0415 - slow to import

        if mark.limit is not None and limit_of(pid) == mark.limit:
            return "limit"
        with suppress(psutil.Error, OSError):
            if mark.text in psutil.Process(pid).environ().get(MARK, ""):
                return "variable"
        return None

    def send(self, member: "Member", number: signal.Signals) -> None:
        """Send a signal."""
        import psutil  # noqa: PLC0415 - slow to import

        with suppress(psutil.Error):
            process = psutil.Process(member.pid)
            if process.create_time() == member.started:
                process.send_signal(number)
