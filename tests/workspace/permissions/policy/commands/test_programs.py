"""What Tiller starts by itself is found on the PATH, and never in a workspace."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.workspace.permissions.policy.commands.programs import (
    find_outside_program,
    outside_path,
)


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return path


def in_it(root: Path, away: Path) -> str:
    program(root / ".venv/bin/tool")
    return str(root / ".venv/bin")


def link_into_it(root: Path, away: Path) -> str:
    away.mkdir()
    (away / "tool").symlink_to(program(root / "bin/tool"))
    return str(away)


def folder_into_it(root: Path, away: Path) -> str:
    program(root / "bin/tool")
    away.symlink_to(root / "bin")
    return str(away)


def through_it(root: Path, away: Path) -> str:
    """Lead out again through a link that lies in the workspace."""
    program(away / "real/tool")
    (root / "way").symlink_to(away / "real")
    (away / "bin").mkdir()
    (away / "bin/tool").symlink_to(root / "way/tool")
    return str(away / "bin")


def script_of_it(root: Path, away: Path) -> str:
    """Be run by an interpreter of the workspace."""
    program(away / "tool", f"#!{program(root / 'python3')}\n")
    return str(away)


def script_by_env(root: Path, away: Path) -> str:
    program(away / "tool", "#!/usr/bin/env nothing-that-is-there\n")
    return str(away)


def dots(root: Path, away: Path) -> str:
    program(root / "bin/tool")
    away.mkdir()
    return f"{away}/../{root.name}/bin"


def relative(root: Path, away: Path) -> str:
    program(root / "bin/tool")
    return os.path.relpath(root / "bin")


def empty(root: Path, away: Path) -> str:
    return ""


def loop(root: Path, away: Path) -> str:
    away.symlink_to(away)
    return str(away)


WAYS = (
    in_it, link_into_it, folder_into_it, through_it, script_of_it, script_by_env, dots, relative, empty, loop,
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_program_that_a_workspace_can_exchange_is_passed_over(
    tmp_path: Path, way: Callable[[Path, Path], str]
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    first = way(root, tmp_path / "away")
    assert find_outside_program("tool", env_path=first, roots=(root,)) is None
    own = program(tmp_path / "own/tool")
    path = f"{first}{os.pathsep}{own.parent}"
    assert find_outside_program("tool", env_path=path, roots=(root,)) == str(own)


def test_a_root_behind_a_link_is_the_same_root(tmp_path: Path) -> None:
    real = tmp_path / "real"
    program(real / "bin/tool")
    (tmp_path / "root").symlink_to(real)
    path = str(real / "bin")
    assert find_outside_program("tool", env_path=path, roots=(tmp_path / "root",)) is None
    assert find_outside_program("tool", env_path=path, roots=()) == f"{path}/tool"


def test_a_program_with_a_folder_is_no_name(tmp_path: Path) -> None:
    own = program(tmp_path / "tool")
    assert find_outside_program(str(own), env_path=str(tmp_path), roots=()) is None


def test_the_path_keeps_what_lies_outside_in_its_order(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "in").symlink_to(root)
    path = f"{root}/bin:/usr/bin:.::{tmp_path}/in:/bin:{tmp_path}/other/../work"
    assert outside_path(path, roots=(root,)) == "/usr/bin:/bin"
