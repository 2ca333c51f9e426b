"""Processes of a session: counted, ended with it, their output redacted."""

import codecs
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from typing_extensions import override

from agent_core.kernel import ToolCallId
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.workspace import NO_NEEDS, KillReport, Process, Processes
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.processes.interactive import ProcessesProxy, ProcessProxy


class RedactedProcesses(ProcessesProxy):
    """A workspace's processes; no byte of a held secret comes out of them, wherever their output is cut into chunks."""

    def __init__(self, processes: Processes, redactor: Redactor) -> None:
        super().__init__(processes)
        self._redactor = redactor

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        """Start, and read through the redactor."""
        process = await self._processes.start(argv, cwd=cwd, env=env, stdin=stdin, needs=needs)
        return _Redacted(process, self._redactor) if self._redactor.holds_any else process


class _Redacted(ProcessProxy):
    def __init__(self, process: Process, redactor: Redactor) -> None:
        super().__init__(process)
        self._stream = redactor.held_stream()
        # What is no UTF-8 comes out again byte for byte.
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    @override
    async def read(self) -> bytes:
        while data := await self._process.read():
            if clean := self._stream.push(self._decoder.decode(data)):
                return clean.encode("utf-8", "surrogateescape")
        rest = self._stream.push(self._decoder.decode(b"", final=True)) + self._stream.finish()
        return rest.encode("utf-8", "surrogateescape")


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

    def release(self, pid: int) -> None:
        """Forget a process that runs on as somebody else's."""
        _ = self.running.pop(pid, None)

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


class TrackedProcesses(ProcessesProxy):
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
        super().__init__(processes)
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


class _Tracked(ProcessProxy):
    def __init__(self, process: Process, log: ProcessLog, running: RunningProcess) -> None:
        super().__init__(process)
        self._log = log
        self._running = running

    @override
    async def end(self, *, grace_s: float) -> KillReport:
        grace_s = self._log.graces_s.pop(self._process.pid, grace_s)
        killed = await self._process.end(grace_s=grace_s)
        _ = self._log.running.pop(self._process.pid, None)
        if killed.pids or killed.survivors:
            self._log.ended.append(
                EndedProcess(command=self._running.command, killed=killed, call=self._running.call)
            )
        return killed
