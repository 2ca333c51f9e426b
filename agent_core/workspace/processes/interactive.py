"""The port of programs that are spoken with while they run, and processes seen through something that adds to them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.port import NO_NEEDS, KillReport, Process, ProcessEnd, Processes


class InteractiveProcess(Process, Protocol):
    """A running program that is spoken with; its output and its errors are two streams."""

    async def read_errors(self) -> bytes:
        """Wait for what it complains of and give a chunk; empty when every writer has closed that."""
        ...

    async def write(self, data: bytes) -> None:
        """Write all of it into its input; waits while it does not read.

        Raises:
            ProcessGone: It does not read any more.
        """
        ...

    def finish(self) -> None:
        """Close its input: a well-behaved program ends then. Idempotent."""
        ...


class InteractiveProcesses(Protocol):
    """Starts programs to be spoken with."""

    async def talk(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        given: Mapping[str, str],
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> InteractiveProcess:
        """Start a program in a group of its own.

        `env` is the whole environment; containment takes out of it what a program must not see. `given` comes on top,
        whatever containment takes out. The caller must `end` it, on every path out.

        Raises:
            FileMissing: The program or the folder is not there.
            AccessRefused: It cannot be started.
        """
        ...


class ProcessesProxy:
    """The way to the port that starts processes; a subclass defines `start`."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    async def before_start(self) -> str | None:
        """Pass on."""
        return await self._processes.before_start()


class ProcessProxy:
    """A process, passed on unchanged; a subclass changes its output or its end."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    async def read(self) -> bytes:
        """Pass on."""
        return await self._process.read()

    async def wait(self) -> ProcessEnd:
        """Pass on."""
        return await self._process.wait()

    async def end(self, *, grace_s: float) -> KillReport:
        """Pass on."""
        return await self._process.end(grace_s=grace_s)
