"""Containment for tests: the real one, where the machine has it."""

import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.sandbox import Boundaries, Sandbox, SandboxCapability, probe, sandbox_for


@cache
def containing() -> SandboxCapability:
    """Say how this machine contains; asked once for all tests."""
    return probe()


def require_full() -> SandboxCapability:
    """Skip a test, saying why, where processes cannot be contained; with CI=true that is a failure."""
    found = containing()
    if found.level != "full":
        why = f"this machine has no full containment: {found.why_not_full}"
        if os.environ.get("CI") == "true" and "not installed" in why:  # noqa: TID251 - the switch is the environment
            pytest.fail(why)
        pytest.skip(why)
    return found


@asynccontextmanager
async def contained_processes(
    *roots: Path, env: Mapping[str, str] | None = None
) -> AsyncGenerator[DiskProcesses]:
    """Make contained processes inside of a test that runs on the loop, which must not look at the disk."""
    with ExitStack() as stack:
        sandbox = await to_thread.run_sync(lambda: stack.enter_context(contained(*roots, env=env)))
        try:
            yield DiskProcesses(sandbox=sandbox)
        finally:
            await to_thread.run_sync(stack.close)


@contextmanager
def contained(
    *roots: Path,
    env: Mapping[str, str] | None = None,
    hidden: tuple[Path, ...] = (),
    readable: tuple[Path, ...] = (),
    quarantine: Path | None = None,
) -> Generator[Sandbox]:
    """Make the full containment of a workspace; skips where there is none."""
    sandbox = sandbox_for(
        require_full(),
        Boundaries(
            roots=roots,
            env=env or {"PATH": os.defpath},
            hidden=hidden,
            readable=readable,
            quarantine=quarantine,
        ),
    )
    try:
        yield sandbox
    finally:
        sandbox.close()
