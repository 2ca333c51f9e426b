"""Which files with names of secrets git holds just as they are."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.guards.secret_places import MOST_FILE_BYTES, TrackedSecrets
from tests.workspace.sandbox.guards.test_holds import git, indexed, put


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "root"
    git(root, "init", "-q")
    return root


def tracked(root: Path, secrets: TrackedSecrets | None = None) -> set[str]:
    found = (secrets or TrackedSecrets()).among(indexed(root))
    return {str(path.relative_to(root)) for path in found}


def test_what_is_committed_or_added_as_it_is_counts(root: Path) -> None:
    put(root / ".env", "committed")
    put(root / "a/b/.npmrc", "a protected one")
    put(root / "code.py")
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    put(root / "c/id_rsa", "added")
    git(root, "add", "c")
    put(root / "d/.env", "not added")
    assert tracked(root) == {".env", "a/b/.npmrc", "c/id_rsa"}


def test_a_name_that_ends_like_a_tracked_one_does_not_count(root: Path) -> None:
    put(root / "a/.env", "same")
    put(root / "x.env", "same")
    git(root, "add", ".")
    put(root / ".env", "same")
    assert tracked(root) == {"a/.env", "x.env"}


def test_a_name_that_stands_at_the_end_of_an_earlier_one_is_found(root: Path) -> None:
    put(root / "A/b.env", "one")
    put(root / "b.env", "other")
    git(root, "add", ".")
    assert tracked(root) == {"A/b.env", "b.env"}


def test_what_is_no_secret_is_not_among_them(root: Path) -> None:
    put(root / "AGENTS.md")
    git(root, "add", ".")
    assert tracked(root) == set()


def _in_conflict(root: Path) -> None:
    git(root, "commit", "-qm", "x")
    git(root, "checkout", "-qb", "other")
    put(root / ".env", "theirs")
    git(root, "commit", "-qam", "y")
    git(root, "checkout", "-q", "-")
    put(root / ".env", "ours")
    git(root, "commit", "-qam", "z")
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "other")


def _linked(root: Path) -> None:
    put(root / "elsewhere", "x" * 10)
    (root / ".env").unlink()
    (root / ".env").symlink_to("elsewhere")
    git(root, "add", ".")


OTHERWISE: dict[str, Callable[[Path], object]] = {
    "changed": lambda root: put(root / ".env", "other"),
    "longer": lambda root: put(root / ".env", "x" * 11),
    "removed from git": lambda root: git(root, "rm", "-q", "--cached", ".env"),
    "in conflict": _in_conflict,
    "a link": _linked,
    "no index": lambda root: (root / ".git/index").unlink(),
    "no repository": lambda root: (root / ".git").rename(root / "moved"),
}


@pytest.mark.parametrize("change", OTHERWISE)
def test_what_git_does_not_hold_as_it_is_does_not_count(root: Path, change: str) -> None:
    put(root / ".env", "x" * 10)
    git(root, "add", ".")
    secrets = TrackedSecrets()
    assert tracked(root, secrets) == {".env"}
    OTHERWISE[change](root)
    # Nothing is taken for what it was before.
    assert tracked(root, secrets) == tracked(root) == set()


def test_what_was_none_counts_once_git_holds_it(root: Path) -> None:
    put(root / ".env", "x")
    secrets = TrackedSecrets()
    assert tracked(root, secrets) == set()
    git(root, "add", ".")
    assert tracked(root, secrets) == {".env"}


def test_each_repository_has_its_own(root: Path) -> None:
    put(root / ".env", "outer")
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    git(root, "worktree", "add", "-q", "--detach", "w")
    assert tracked(root) == {".env", "w/.env"}
    git(root / "sub", "init", "-q")
    put(root / "sub/.env", "outer")
    assert tracked(root) == {".env", "w/.env"}
    put(root / "w/.env", "other")
    assert tracked(root) == {".env"}


@pytest.mark.parametrize(("more", "counts"), [(0, True), (1, False)])
def test_a_large_file_counts_as_a_secret(root: Path, more: int, counts: bool) -> None:
    put(root / ".env", "x" * (MOST_FILE_BYTES + more))
    git(root, "add", ".")
    assert tracked(root) == ({".env"} if counts else set())
