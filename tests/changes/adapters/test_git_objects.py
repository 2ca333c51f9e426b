"""The look at what commands change starts no program that the repository names or that lies in it, contained or not."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from agent_core.changes.adapters.disk_detector import DiskChangeDetector
from agent_core.changes.commit_check import committed
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.workspace.poisoned import POISONS, poisoned
from tests.support.workspace.repositories import Repository

pytestmark = [pytest.mark.timeout(60)]


async def held_before(root: Path, env: Mapping[str, str]) -> bytes | None:
    """Change a committed file as a command would, and give what the look says it held before."""
    contents = MemoryBlobStore()
    lookout = DiskChangeDetector((root,), contents, DiskProcesses(), env=env)
    try:
        await lookout.snapshot()
        (root / "b.py").write_text("B = 5\n", "utf-8")
        effects = await lookout.diff()
    finally:
        lookout.close()
    version = {one.path.name: one.before for one in effects.files}["b.py"]
    return (
        None if version is None or version.content is None else await contents.get(version.content)
    )


@pytest.mark.parametrize("name", POISONS)
async def test_no_program_that_the_repository_names_is_started(tmp_path: Path, name: str) -> None:
    mark = tmp_path / "PWNED"
    repository = poisoned(tmp_path / "project", name, mark)
    repository.git("-c", "core.hooksPath=/dev/null", "update-ref", "refs/heads/at", "HEAD")
    mark.unlink(missing_ok=True)
    env = {"PATH": "/usr/bin:/bin"}
    assert await held_before(repository.root, env) in {b"B = 3\n", None}
    _ = await committed(
        {repository.root / "b.py": lambda: b"B = 2\n"},
        root=repository.root,
        roots=(repository.root,),
        since_ms=0,
        processes=DiskProcesses(),
        env=env,
    )
    assert not mark.exists()


@pytest.mark.parametrize("place", [".venv/bin", "node_modules/.bin"])
async def test_no_git_of_the_workspace_is_started(tmp_path: Path, place: str) -> None:
    mark = tmp_path / "PWNED"
    repository = Repository(tmp_path / "project")
    repository.commit("Begin", {"b.py": "B = 1\n", ".gitignore": ".venv\nnode_modules\n"})
    # Old enough for the index to be believed, so that git is asked and nothing is copied.
    for path in (repository.root / "b.py", repository.root / ".gitignore"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    repository.git("update-index", "--refresh")
    planted = repository.root / place / "git"
    planted.parent.mkdir(parents=True)
    planted.write_text(f'#!/bin/sh\ntouch {mark}\nexec /usr/bin/git "$@"\n', "utf-8")
    planted.chmod(0o755)
    env = {"PATH": f"{planted.parent}{os.pathsep}/usr/bin:/bin"}
    control = ["git", "status"]
    await to_thread.run_sync(
        lambda: subprocess.run(control, cwd=repository.root, env=env, check=True)
    )
    assert mark.exists()
    mark.unlink()
    assert await held_before(repository.root, env) == b"B = 1\n"
    found = await committed(
        {repository.root / "b.py": lambda: b"B = 1\n"},
        root=repository.root,
        roots=(repository.root,),
        since_ms=0,
        processes=DiskProcesses(),
        env=env,
    )
    assert found == {repository.root / "b.py"}
    assert not mark.exists()
