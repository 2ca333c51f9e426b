"""The processes that tools have running, so that a cancel can say which it ended and which it could not."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_core.kernel import ToolCallId
from agent_core.kernel.values import Value
from agent_core.workspace import NO_NEEDS, KillReport, Process, ProcessEnd, Processes
from agent_core.workspace.permissions.call_permission import Needs

MOST_GRACE_S = 4.0
"""A cancel is answered within 5 s: the kill and the telling need the rest."""


class EndedProcess(Value, frozen=True, kw_only=True):
    """A process tree that was ended."""

    command: str
    killed: KillReport
    call: ToolCallId | None = None
    """The tool call that started it."""


class RunningProcess(Value, frozen=True):
    """A process that runs."""

    command: str
    call: ToolCallId | None


class ProcessLog(Struct):
    """Running processes, and processes that were ended so far."""

    running: dict[int, RunningProcess] = msgspec.field(default_factory=dict)
    """By process id."""
    ended: list[EndedProcess] = msgspec.field(default_factory=list)
    graces_s: dict[int, float] = msgspec.field(default_factory=dict)
    """Process id to the grace that a cancel asked for; the tool's own grace otherwise."""

    def ask_grace(self, grace_s: float, *, call: ToolCallId | None = None) -> None:
        """Set the grace of running processes between the request to end and the kill, at most `MOST_GRACE_S`."""
        asked = [pid for pid, one in self.running.items() if call in {None, one.call}]
        self.graces_s = dict.fromkeys(asked, min(grace_s, MOST_GRACE_S))

    def drain(self, call: ToolCallId | None = None) -> tuple[EndedProcess, ...]:
        """Remove and return the processes that were ended since the last call, of one tool call or of all."""
        ended = tuple(one for one in self.ended if call in {None, one.call})
        self.ended = [one for one in self.ended if one not in ended]
        return ended

    def left(self, call: ToolCallId | None = None) -> tuple[tuple[int, str], ...]:
        """Return the ids and commands of what still runs, of one tool call or of all."""
        return tuple(
            (pid, one.command) for pid, one in self.running.items() if call in {None, one.call}
        )


class TrackedProcesses:
    """A workspace's processes, written down in a log."""

    def __init__(
        self,
        processes: Processes,
        log: ProcessLog,
        *,
        call: ToolCallId | None = None,
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> None:
        """Create a starter of processes, with none running.

        Args:
            processes: The port that starts them.
            log: The log that records them.
            call: The tool call that starts them.
            needs: Additional needs of each process.
        """
        self._processes = processes
        self._needs = needs
        self._log = log
        self._call = call

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        """Start and write down."""
        process = await self._processes.start(
            argv, cwd=cwd, env=env, stdin=stdin, needs=needs | self._needs
        )
        running = RunningProcess(argv[-1], self._call)
        self._log.running[process.pid] = running
        return _Tracked(process, self._log, running)

    async def before_start(self) -> str | None:
        """Pass on."""
        return await self._processes.before_start()


class _Tracked:
    def __init__(self, process: Process, log: ProcessLog, running: RunningProcess) -> None:
        self._process = process
        self._log = log
        self._running = running

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self) -> bytes:
        return await self._process.read()

    async def wait(self) -> ProcessEnd:
        return await self._process.wait()

    async def end(self, *, grace_s: float) -> KillReport:
        grace_s = self._log.graces_s.pop(self._process.pid, grace_s)
        killed = await self._process.end(grace_s=grace_s)
        _ = self._log.running.pop(self._process.pid, None)
        if killed.pids or killed.survivors:
            self._log.ended.append(
                EndedProcess(command=self._running.command, killed=killed, call=self._running.call)
            )
        return killed
