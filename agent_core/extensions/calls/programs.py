"""Runs programs for extensions."""

from typing import Final

import anyio

from agent_core.kernel.values import Value
from agent_core.workspace import Workspace
from agent_core.workspace.permissions.call_permission import Needs

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
