"""Containment follows the folders of a workspace, and no command is held in by less than it was judged with."""

from pathlib import Path

import pytest

from agent_core.assembly.workspace import SandboxPerRoots
from agent_core.workspace.permissions.call_permission import Needs, SandboxLevel
from agent_core.workspace.sandbox import Sandbox, SandboxCapability
from agent_core.workspace.sandbox.backends.uncontained import Uncontained

PROJECT, EVERYTHING = Path("/project"), Path("/")
NONE: frozenset[Needs] = frozenset()
AGREED: frozenset[Needs] = frozenset({"uncontained"})


def made(roots: tuple[Path, ...]) -> Sandbox:
    """Make what stands for full containment, but where everything is a root."""
    level: SandboxLevel = "none" if EVERYTHING in roots else "full"
    return Uncontained(SandboxCapability(level=level, how="a test"))


def test_what_was_judged_among_other_folders_never_runs_uncontained() -> None:
    roots = [PROJECT]
    sandbox = SandboxPerRoots(lambda: tuple(roots), made=made)
    assert sandbox.containing.level == "full"
    roots.append(EVERYTHING)
    with pytest.raises(PermissionError, match="run it again"):
        _ = sandbox.wrap(("true",), cwd=PROJECT, env={}, needs=NONE)
    assert sandbox.containing.level == "none"
    assert sandbox.wrap(("true",), cwd=PROJECT, env={}, needs=AGREED).argv == ("true",)
    roots.pop()
    assert sandbox.wrap(("true",), cwd=PROJECT, env={}, needs=NONE).argv == ("true",)


def test_where_nothing_was_ever_contained_programs_of_ours_start() -> None:
    sandbox = SandboxPerRoots(lambda: (EVERYTHING,), made=made)
    assert sandbox.wrap(("true",), cwd=PROJECT, env={}, needs=NONE).argv == ("true",)
