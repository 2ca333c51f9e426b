"""The processes that tools have running, so that a cancel can say which it ended and which it could not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent_core.workspace import NO_NEEDS, Killed, Process, ProcessEnd, Processes
from agent_core.workspace.permission import Needs

MOST_GRACE_S = 4.0
"""A cancel is answered within 5 s: the kill and the telling need the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process tree that was ended."""

    command: str
    killed: Killed


@dataclass(slots=True)
class ProcessLog:
    """What runs, and what was ended so far."""

    running: dict[int, str] = field(default_factory=dict)
    """Process id to command."""
    ended: list[Ended] = field(default_factory=list)
    graces_s: dict[int, float] = field(default_factory=dict)
    """Process id to the grace that a cancel asked for; the tool's own grace otherwise."""

    def ask_grace(self, grace_s: float) -> None:
        """Let what runs now have this long between being asked to end and being killed, at most `MOST_GRACE_S`."""
        self.graces_s = dict.fromkeys(self.running, min(grace_s, MOST_GRACE_S))

    def drain(self) -> tuple[Ended, ...]:
        """Take out what was ended since the last call."""
        ended = tuple(self.ended)
        self.ended.clear()
        return ended


class TrackedProcesses:
    """A workspace's processes, written down in a log."""

    def __init__(self, processes: Processes, log: ProcessLog) -> None:
        self._processes = processes
        self._log = log

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
        process = await self._processes.start(argv, cwd=cwd, env=env, stdin=stdin, needs=needs)
        command = argv[-1]
        self._log.running[process.pid] = command
        return _Tracked(process, self._log, command)

    async def before_start(self) -> str | None:
        """Pass on."""
        return await self._processes.before_start()


class _Tracked:
    def __init__(self, process: Process, log: ProcessLog, command: str) -> None:
        self._process = process
        self._log = log
        self._command = command

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self) -> bytes:
        return await self._process.read()

    async def wait(self) -> ProcessEnd:
        return await self._process.wait()

    async def end(self, *, grace_s: float) -> Killed:
        grace_s = self._log.graces_s.pop(self._process.pid, grace_s)
        killed = await self._process.end(grace_s=grace_s)
        _ = self._log.running.pop(self._process.pid, None)
        if killed.pids or killed.survivors:
            self._log.ended.append(Ended(command=self._command, killed=killed))
        return killed
