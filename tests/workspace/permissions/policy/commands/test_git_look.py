"""A repository's own files say whether git would start programs there; what is not plain counts as yes."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.workspace.permissions.policy import git_starts_programs
from agent_core.workspace.permissions.policy.commands.git_inspection import (
    MOST_CONFIG_BYTES,
    setting_names,
)

ENV = {"PATH": os.defpath, "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
WHO = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *WHO, *words], cwd=folder, env=ENV, check=True, capture_output=True
    )
    return done.stdout.decode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "file").write_text("x\n")
    git(root, "add", "file")
    git(root, "commit", "-qm", "first")
    return root


def test_an_ordinary_repository_starts_nothing(root: Path) -> None:
    git(root, "remote", "add", "origin", "https://example.com/x.git")
    git(root, "config", "branch.main.remote", "origin")
    git(root, "config", "user.name", "A B; # c")
    assert not git_starts_programs(root)
    (root / ".git/index").unlink()
    assert not git_starts_programs(root)


def _submodule(root: Path) -> None:
    """An entry of the index that is a repository, as a clone brings it along."""
    inner = root / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-qm", "x", "--allow-empty")
    git(root, "add", "inner")


def _swap(root: Path, name: str) -> None:
    (root / ".git" / name).rename(root / name)
    (root / ".git" / name).symlink_to(root / name)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a key that names a program": lambda root: git(root, "config", "core.fsmonitor", "./x"),
    "more settings": lambda root: git(root, "config", "include.path", "../more"),
    "a hook": lambda root: (root / ".git/hooks/post-index-change").write_text("x"),
    "hooks elsewhere": lambda root: _swap(root, "hooks"),
    "a configuration elsewhere": lambda root: _swap(root, "config"),
    "an index elsewhere": lambda root: _swap(root, "index"),
    "no configuration": lambda root: (root / ".git/config").unlink(),
    "a pipe": lambda root: ((root / ".git/config").unlink(), os.mkfifo(root / ".git/config")),
    "too much": lambda root: (root / ".git/config").write_text("#" * (MOST_CONFIG_BYTES + 1)),
    "no text": lambda root: (root / ".git/config").write_bytes(b"[core]\n\tx = \xff\n"),
    "settings of a worktree": lambda root: (root / ".git/config.worktree").write_text(""),
    "another common folder": lambda root: (root / ".git/commondir").write_text("../x"),
    "another work folder": lambda root: (root / ".git/gitdir").write_text("../x"),
    "modules": lambda root: (root / ".git/modules").mkdir(),
    "a rebase": lambda root: (root / ".git/rebase-merge").mkdir(),
    "patches": lambda root: (root / ".git/rebase-apply").mkdir(),
    "picks": lambda root: (root / ".git/sequencer").mkdir(),
    "a repository inside": _submodule,
    "a split index": lambda root: git(root, "update-index", "--split-index"),
    "a link": lambda root: ((root / ".git").rename(root / "g"), (root / ".git").symlink_to("g")),
    "a file": lambda root: (
        (root / ".git").rename(root / "g"),
        (root / ".git").write_text("gitdir: g"),
    ),
    "none": lambda root: (root / ".git").rename(root / "g"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_whatever_else_there_is_counts_as_yes(root: Path, case: str) -> None:
    assert not git_starts_programs(root)
    CHANGES[case](root)
    assert git_starts_programs(root)


TREES: dict[str, Callable[[Path, Path], object]] = {
    "a filter": lambda main, _: git(main, "config", "filter.x.clean", "run"),
    "a hook": lambda main, _: (main / ".git/hooks/pre-commit").write_text(""),
    "own settings": lambda main, _: (main / ".git/worktrees/tree/config.worktree").write_text(""),
    "a rebase": lambda main, _: (main / ".git/worktrees/tree/rebase-merge").mkdir(),
    "another worktree": lambda main, _: (main / ".git/worktrees/tree/gitdir").write_text("/x/.git"),
    "the repository itself": lambda main, tree: (tree / ".git").write_text(f"gitdir: {main}/.git"),
}


@pytest.mark.parametrize("case", TREES)
def test_a_linked_worktree_is_examined_with_its_repository(
    root: Path, tmp_path: Path, case: str
) -> None:
    tree = tmp_path / "tree"
    git(root, "worktree", "add", "-q", str(tree))
    assert not git_starts_programs(tree)
    TREES[case](root, tree)
    assert git_starts_programs(tree)


def test_the_largest_configuration_is_read(root: Path) -> None:
    text = (root / ".git/config").read_text()
    (root / ".git/config").write_text(text + "#" * (MOST_CONFIG_BYTES - len(text)))
    assert not git_starts_programs(root)


PLAIN = (
    '[core]\n\tbare = false\n# no\n ; [x]\n\n[remote "a.b"]\r\n\turl = x\r\n  flag\n'
    '[branch "q\\"\\\\"]\n\tmerge = "a # b" ; c\n[old.way]\nkey=v\n'
)


def test_the_names_are_those_that_git_reads(tmp_path: Path) -> None:
    (tmp_path / "c").write_text(PLAIN, newline="")
    read = git(tmp_path, "config", "--file", "c", "--name-only", "--list").split("\n")[:-1]
    assert read == [
        "core.bare",
        "remote.a.b.url",
        "remote.a.b.flag",
        'branch.q"\\.merge',
        "old.way.key",
    ]
    assert [name.replace("\\\\", "\\").replace('\\"', '"') for name in setting_names(PLAIN)] == read  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "[core] fsmonitor = x",
        "[core]\n\tbare = false \\\n\tfsmonitor = x",
        "[core]\n\tbare = false \\\r\n",
        "[core]\n\tbare = false\x0b\n[",
        "[core\n]",
        "[core]]\n",
        '[core "x]\n',
        "\ufeff[core]\n",
        "key = before any section",
        "[core]\n1key = x",
        "[core]\nke_y = x",
        "[core]\nkey x",
        "[a][core]\n",
    ],
)
def test_a_line_that_is_not_plain_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match="no plain line"):
        setting_names(text)
