"""Values that containment takes and returns, and the port through which processes are contained."""

import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.call_permission import Needs, SandboxLevel


class PrestartedProcess(Protocol):
    """A process that waits for its command."""

    def end(self) -> None:
        """End it unused. Blocking, idempotent."""
        ...


class Slot:
    """Room for one such process. Threads may share it."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._waiting: PrestartedProcess | None = None
        self._is_closed = False

    def fill(self, start: Callable[[], PrestartedProcess | None]) -> None:
        """Start a process that waits, unless there is one or the slot was closed. Blocking."""
        with self._turn:
            if self._waiting is None and not self._is_closed:
                self._waiting = start()

    def take(self) -> PrestartedProcess | None:
        """Return the process that waits, which the caller then ends; None: there is none."""
        with self._turn:
            waiting, self._waiting = self._waiting, None
            return waiting

    def close(self) -> None:
        """End what waits; nothing is started any more. Blocking, idempotent."""
        with self._turn:
            self._is_closed = True
            waiting, self._waiting = self._waiting, None
            if waiting is not None:
                waiting.end()


class SandboxCapability(Value, frozen=True, kw_only=True):
    """How this machine contains processes, found out by trying."""

    level: SandboxLevel
    how: str
    """The mechanism, for people: `bubblewrap 0.8.0`."""
    program: str | None = None
    """The program that does it, as an absolute path."""
    why_not_full: str | None = None
    """One sentence; None when `level` is `full`."""
    can_forbid_userns: bool = False
    """bubblewrap can forbid further user namespaces; the filter of system calls does so in any case."""


class SandboxReport(Value, frozen=True, kw_only=True):
    """Result of containment after a command is over."""

    quarantined: tuple[Path, ...] = ()
    """Protected files that it made; they were taken away."""
    denied: tuple[str, ...] = ()
    """Operations that containment denied, a sentence each, with what to do."""


def _nothing() -> None:
    """Do nothing."""


class Launch(Value, frozen=True, kw_only=True):
    """How to start one contained process."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    pass_fds: tuple[int, ...] = ()
    """Descriptors that the new process inherits; `started` closes them here."""
    output_at: int | None = None
    """Where in `argv` the number of the descriptor for output stands; the output of the first process itself is then
    the report of a keeper, which says how the command ended and waits. None: there is no keeper."""
    command_at: int = 0
    """Where in `argv` the command itself begins."""
    report_key: str = ""
    """Begins a report of the keeper; the command does not know it, and so cannot report in its place."""
    starting: Callable[[], None] = _nothing
    """Called just before the start, on the thread that starts it: processes of that thread are limited from then on."""
    started: Callable[[], None] = _nothing
    """To be called once it was started, or could not be. Idempotent."""
    after: Callable[[str, int | None], SandboxReport] | None = None
    """To be called when all of it has ended, with the end of its output and its exit code; None: nothing is known of that. Blocking."""
    ahead: "PrestartPlan | None" = None
    """How a process is started that waits for a later command of this kind; None: none can be."""
    order_fd: int | None = None
    """Of a process that waits: the descriptor that its order is written to, which the caller closes. `argv` has no command then."""


class PrestartPlan(Value, frozen=True, kw_only=True):
    """How the namespace of a command is built before the command is known."""

    conditions: tuple[object, ...]
    """All that it is built from: one built from equal conditions serves a command, while its mounts are as they were."""
    planned: str
    """Mounts that the namespace must have, as of `planned_mounts`."""
    slot: Slot
    """Holds the process that waits."""
    launch: Callable[[], Launch]
    """Returns how to start it. Blocking, raises OSError."""


class Boundaries(Value, frozen=True, kw_only=True):
    """Limits of the processes of a workspace."""

    roots: tuple[Path, ...]
    """Absolute and resolved."""
    env: Mapping[str, str]
    """Of the connection that prompted; says where homes and keys are."""
    hidden: tuple[Path, ...] = ()
    """Our own folders: settings, keys, sessions, sockets."""
    readable: tuple[Path, ...] = ()
    """Parts of the hidden folders that may be read all the same."""
    visible: Callable[[], Collection[Path]] = tuple
    """Returns the real paths of secret files in the roots that a person allowed to be read; called before each command."""
    passed_variables: tuple[str, ...] = ()
    """Variables that commands get besides those of tool chains, as `scrubbed` takes them."""
    readable_extra: tuple[Path, ...] = ()
    """Folders of a home that commands may read besides those of tool chains; absolute."""
    quarantine: Path | None = None
    """Where protected files go that a command made; None: they are deleted with its temporary folder."""


class Sandbox(Protocol):
    """Contains the processes of one workspace."""

    @property
    def containing(self) -> SandboxCapability:
        """Containment of this workspace."""
        ...

    def wrap(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        needs: frozenset[Needs],
    ) -> Launch:
        """Return how to start a process. Blocking: looks at the disk.

        Args:
            argv: The program with its arguments.
            cwd: Inside of a root.
            env: The user's environment; variables that a command must not see are removed from it.
            needs: Access beyond containment that was agreed to.

        Raises:
            OSError: The program does not exist, or containment cannot be built; then nothing must be started.
        """
        ...

    def close(self) -> None:
        """Remove what commands kept in their private temporary folder. Blocking, idempotent."""
        ...
