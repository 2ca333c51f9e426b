"""The port through which programs are started that are spoken with for as long as they run: servers of others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.port import NO_NEEDS, Process


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
