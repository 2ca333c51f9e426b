"""Worktrees of a repository of a test, with owners that a test names."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from agent_core.kernel import SystemClock
from agent_core.workspace.git.worktrees.service import Worktrees
from tests.support.workspace.repositories import Repository

ENV = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@dataclass
class Owners:
    """Sessions that are open, by name."""

    open: set[str] = field(default_factory=set[str])

    def this_process(self) -> str:
        return "1"

    def active(self, folder: Path, *, owner: str, process: str, asking: str | None) -> str | None:
        _ = folder, process
        return f"the session {owner}" if owner in self.open and owner != asking else None


@dataclass
class Ground:
    """A repository with two files, and worktrees of it."""

    repository: Repository
    owners: Owners
    worktrees: Worktrees
    data: Path

    def inside(self, id_: str = "w1") -> Repository:
        """Return a worktree, for git to work in."""
        made = object.__new__(Repository)
        made.root = self.data / id_
        return made

    def refs(self) -> str:
        """Return all refs of the repository."""
        return self.repository.git("for-each-ref", "--format=%(refname)")


def ground(folder: Path) -> Ground:
    """Make a repository and a service."""
    repository = Repository(folder / "repo")
    repository.commit(
        "Begin", {"a.txt": "one\ntwo\nthree\n", "dir/b.txt": "b\n", ".gitignore": "*.log\n"}
    )
    owners = Owners()
    data = folder / "data" / "worktrees"
    service = Worktrees(data, env=ENV, owners=owners, clock=SystemClock())
    return Ground(repository=repository, owners=owners, worktrees=service, data=data)
