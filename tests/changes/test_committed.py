"""What git has as it is: asked without starting anything, and believed only when it is new enough."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_core.changes.commit_check import committed
from agent_core.kernel.errors import FileMissing
from agent_core.workspace import NO_NEEDS, Process
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.processes.disk_processes import DiskProcesses

TEXT = b"text\r\n"
ENV = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null"}


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.autocrlf=false")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True, env=ENV)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for name in ("a.txt", "sub/ä b.txt", ":(glob)*"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(TEXT)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "one")
    return tmp_path


async def ask(root: Path, *names: str, data: bytes = TEXT, since_ms: int = 0) -> set[str]:
    files = {root / name: lambda: data for name in names}
    found = await committed(
        files, root=root, roots=(root,), since_ms=since_ms, processes=DiskProcesses(), env=ENV
    )  # fmt: skip
    return {path.relative_to(root).as_posix() for path in found}


async def test_files_that_are_in_the_newest_commit_just_so_are_committed(root: Path) -> None:
    names = ("a.txt", "sub/ä b.txt", ":(glob)*", "none.txt")
    assert await ask(root, *names) == set(names[:3])
    assert await ask(root, *names, data=b"text\n") == set()


async def test_a_folder_of_a_repository_is_asked_about_its_own_files(root: Path) -> None:
    assert await ask(root / "sub", "ä b.txt", "a.txt") == {"ä b.txt"}


async def test_an_older_commit_says_nothing(root: Path) -> None:
    assert await ask(root, "a.txt", since_ms=10**14) == set()


async def test_the_repository_starts_no_program(root: Path) -> None:
    mark = root / "ran"
    for key in ("core.fsmonitor", "gpg.program", "core.pager", "core.sshCommand"):
        git(root, "config", key, f"touch {mark}; false")
    git(root, "config", "log.showSignature", "true")
    git(root, "config", "pager.log", "true")
    assert await ask(root, "a.txt") == {"a.txt"}
    assert not mark.exists()


async def test_without_a_repository_or_git_nothing_is_committed(tmp_path: Path) -> None:
    assert await ask(tmp_path, "a.txt") == set()
    none = await committed(
        {tmp_path / "a.txt": lambda: TEXT},
        root=tmp_path,
        roots=(),
        since_ms=0,
        processes=NoGit(),
        env=ENV,
    )
    assert none == frozenset()


class NoGit:
    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        raise FileMissing("no git here")

    async def before_start(self) -> str | None:
        return None
