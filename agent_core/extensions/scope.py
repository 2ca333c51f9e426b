"""Session access of one load of an extension: its lifetime, calls from threads, programs that it runs."""

from typing import Final

import anyio

from agent_core.extensions.ports import Lifetime, Services, Session
from agent_core.kernel.errors import Unsupported
from agent_core.kernel.values import Value
from agent_core.workspace import Workspace
from agent_core.workspace.permissions.call_permission import Needs

TOO_EARLY = "the session is not open while extensions are loaded; do this in a handler, of session_start for one"


class ExtensionScope:
    """The session of an extension, asked for anew at each use."""

    __slots__ = ("_services", "extension", "life")

    def __init__(self, extension: str) -> None:
        self.extension = extension
        self.life = Lifetime(extension)
        self._services: Services | None = None

    def bind(self, services: Services) -> None:
        """Set the session's services."""
        self._services = services

    @property
    def services(self) -> Services:
        """Services of the session for extensions.

        Raises:
            ContextStale: The extension was reloaded, or the session is closed.
            Unsupported: The extension is only being loaded.
        """
        self.life.check()
        if self._services is None:
            raise Unsupported(TOO_EARLY)
        return self._services

    @property
    def session(self) -> Session:
        """The session; raises as `services`."""
        return self.services.session


KEPT_BYTES: Final = 4 * 1024 * 1024
"""Of what a program prints; it is read on, so that it is not held up, and the rest is let go."""
GRACE_S: Final = 2.0


class ExecResult(Value, frozen=True, kw_only=True):
    """Result of a program."""

    output: str
    """Output of the program, standard error included, in order."""
    exit_code: int | None
    """None: a signal ended it, or its time was over."""
    timed_out: bool = False
    truncated: bool = False
    """It wrote more than is kept."""


async def run_program(
    workspace: Workspace,
    argv: tuple[str, ...],
    *,
    timeout_s: float | None,
    needs: frozenset[Needs],
) -> ExecResult:
    """Run a program to its end, or to the end of its time; cancelled, it is ended with all that it started.

    Raises:
        WorkspaceError: It cannot be started.
    """
    process = await workspace.processes.start(
        argv, cwd=workspace.root, env=workspace.env, needs=needs
    )
    kept = bytearray()
    written = 0
    ended = None
    try:
        with anyio.move_on_after(timeout_s):
            while chunk := await process.read():
                written += len(chunk)
                kept += chunk[: KEPT_BYTES - len(kept)]
            ended = await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            _ = await process.end(grace_s=GRACE_S)
    return ExecResult(
        output=kept.decode("utf-8", "replace"),
        exit_code=None if ended is None else ended.exit_code,
        timed_out=ended is None,
        truncated=written > len(kept),
    )
