"""Adapter between the red team and the product: the one module here that knows how a command is contained.

Run as a program it contains one command and prints its end as JSON, for tests that need the product to be installed elsewhere.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import anyio
from anyio import to_thread

from agent_core.kernel.errors import TillerError
from agent_core.workspace.permissions.call_permission import Needs, SandboxLevel as Level
from agent_core.workspace.permissions.policy import Ask, CommandAccess, Deny, decide, writes_data
from agent_core.workspace.permissions.policy.subjects import PolicyContext
from agent_core.workspace.permissions.protected_names import (
    PROTECTED_FOLDERS,
    PROTECTED_NAMES,
    PROTECTED_PATTERNS,
    folded,
)
from agent_core.workspace.port import KillReport, ProcessEnd
from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.sandbox import Boundaries, Sandbox, SandboxCapability, probe, sandbox_for

GRACE_S = 0.15
LIMIT_S = 60.0
PLANTED = b"PLANTED"
"""A command prints it and waits for the file `go` when something has to happen while it runs."""
DEPENDENCIES = frozenset(
    {"node_modules", ".venv", "venv", "site-packages", "target", "__pycache__"}
)
"""Folders in which nothing but git folders is guarded."""

_FOLDERS = frozenset(name.casefold() for name in PROTECTED_FOLDERS)
_NAMES = frozenset(name.casefold() for name in PROTECTED_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """End of one command."""

    output: str = ""
    exit_code: int | None = None
    quarantined: tuple[Path, ...] = ()
    refused: str | None = None
    """Why it was not started; None: it was."""
    failed: str | None = None
    """The error that its clean-up ended with; None: it was carried through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Containment:
    """Contained commands of one workspace."""

    boundaries: Boundaries
    level: SandboxCapability
    env: Mapping[str, str]

    @contextmanager
    def opened(self) -> Generator["Commands"]:
        """Open the containment, as one session does."""
        sandbox = sandbox_for(self.level, self.boundaries)
        try:
            yield Commands(sandbox=sandbox, env=self.env, boundaries=self.boundaries)
        finally:
            sandbox.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """Starts commands in one containment."""

    sandbox: Sandbox
    env: Mapping[str, str]
    boundaries: Boundaries

    def run(
        self,
        command: str,
        *,
        cwd: Path | None = None,
        during: Callable[[], object] | None = None,
        beside: tuple["Commands", str] | None = None,
    ) -> Ran:
        """Run a command to its end, and its clean-up.

        Args:
            during: Called once the command has printed `PLANTED`.
            beside: A command of another session that runs until this one has ended.
        """
        return self.run_all((command,), cwd=cwd, during=during, beside=beside)[0]

    def run_all(
        self,
        commands: tuple[str, ...],
        *,
        cwd: Path | None = None,
        during: Callable[[], object] | None = None,
        beside: tuple["Commands", str] | None = None,
    ) -> tuple[Ran, ...]:
        """Run commands one after the other; those after a refused one too."""

        async def work() -> tuple[Ran, ...]:
            if beside is None:
                return tuple([await self._run(one, cwd, during) for one in commands])
            other, script = beside
            process = await other._start(script, None)
            if isinstance(process, str):
                return tuple([await self._run(one, cwd, during) for one in commands])
            try:
                _ = await process.read()
                return tuple([await self._run(one, cwd, during) for one in commands])
            finally:
                # What its clean-up does is seen on the disk.
                with suppress(OSError, TillerError):
                    _ = await process.end(grace_s=GRACE_S)

        return anyio.run(work)

    async def _start(self, command: str, cwd: Path | None):
        processes = DiskProcesses(sandbox=self.sandbox)
        # As the tool `bash` does: only a command that is plainly git may write objects and refs.
        roots = self.boundaries.roots
        look = partial(writes_data, command, env_path=self.env["PATH"], roots=roots)
        writes = await to_thread.run_sync(look)
        needs: frozenset[Needs] = frozenset({"gitData"}) if writes else frozenset()
        try:
            return await processes.start(
                ("bash", "-c", command), cwd=cwd or roots[0], env=self.env, needs=needs
            )
        except (OSError, TillerError) as error:
            return f"{type(error).__name__}: {error}"

    async def _run(
        self, command: str, cwd: Path | None, during: Callable[[], object] | None
    ) -> Ran:
        process = await self._start(command, cwd)
        if isinstance(process, str):
            return Ran(refused=process)
        output = bytearray()
        end = ProcessEnd(exit_code=None)
        killed, failed = KillReport(pids=(), survivors=()), None

        async def read() -> None:
            waits = during
            while chunk := await process.read():
                output.extend(chunk)
                if waits is not None and PLANTED in output:
                    waits()
                    waits = None

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            with anyio.move_on_after(LIMIT_S):
                end = await process.wait()
            try:
                killed = await process.end(grace_s=GRACE_S)
            except (OSError, TillerError) as error:
                failed = f"{type(error).__name__}: {error}"
                tasks.cancel_scope.cancel()
        return Ran(
            failed=failed,
            output=output.decode("utf-8", "replace"),
            exit_code=end.exit_code,
            quarantined=killed.quarantined,
        )


def boundaries(
    *roots: Path, env: Mapping[str, str], own: tuple[Path, ...], quarantine: Path
) -> Boundaries:
    """Return the boundaries of a workspace."""
    return Boundaries(roots=roots, env=env, hidden=own, quarantine=quarantine)


def verdict(
    command: str, *, root: Path, level: Level, mode: str = "auto", git_starts_programs: bool = True
) -> str:
    """Return what the policy does with a command without rules: `run`, `ask` or `refuse`.

    Args:
        git_starts_programs: Whether the repository has hooks or filters.
    """
    situation = PolicyContext(mode=mode, trusted=True, containment=level, roots=(root,))  # pyright: ignore[reportArgumentType] - from a table
    asked = CommandAccess(
        command=command, cwd=root, env_path=os.defpath, git_starts_programs=git_starts_programs
    )
    match decide(asked, situation):
        case Ask():
            return "ask"
        case Deny():
            return "refuse"
        case _:
            return "run"


def is_protected_name(parts: tuple[str, ...]) -> bool:
    """Check whether a path, relative to its root, is or lies in something protected.

    What lies in a folder of dependencies is so only as part of a git folder.
    """
    names = tuple(folded(part) for part in parts)
    if DEPENDENCIES.intersection(parts):
        return ".git" in names
    pairs = [f"{first}/{second}" for first, second in pairwise(names)]
    return (
        any(one in _FOLDERS for one in (*names, *pairs))
        or names[-1] in _NAMES
        or any(_is_pattern(one) for one in names)
    )


@cache
def _is_pattern(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in PROTECTED_PATTERNS)


def run_uncontained(command: str, *, root: Path, env: Mapping[str, str]) -> Ran:
    """Run a command without any containment."""
    done = subprocess.run(
        ["bash", "-c", command], cwd=root, env=dict(env), capture_output=True, check=False
    )
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    return replace(Ran(), output=text, exit_code=done.returncode)


def main(root: Path, home: Path, command: str) -> None:
    """Contain one command in a workspace and print its end."""
    env = {"PATH": os.defpath, "HOME": str(home)}
    bounds = boundaries(root, env=env, own=(), quarantine=home / "quarantine")
    with Containment(boundaries=bounds, level=probe(), env=env).opened() as commands:
        ran = commands.run(command)
    print(json.dumps({"output": ran.output, "code": ran.exit_code, "refused": ran.refused}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
