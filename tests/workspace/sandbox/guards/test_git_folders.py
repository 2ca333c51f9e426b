"""Which folders git keeps things in for a workspace, and which new ones run nothing."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.guards.git import (
    MOST_BYTES,
    NEUTRAL_CONFIG,
    RUNS_PROGRAMS,
    git_folders,
    is_tame,
    is_tame_hooks,
    neutral_config,
)


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always")
    env = {"PATH": os.defpath, "HOME": "/nonexistent"}
    subprocess.run(["git", *who, *words], cwd=folder, env=env, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "commit", "-qm", "x", "--allow-empty")
    return root


def paths(root: Path) -> list[Path]:
    return [one.path for one in git_folders(root)]


def test_an_ordinary_repository_has_one(root: Path) -> None:
    (folder,) = git_folders(root)
    assert folder.path == root / ".git"
    there = {name for name in RUNS_PROGRAMS if (root / ".git" / name).exists()}
    assert {one.name for one in folder.guarded} == there >= {"config", "hooks"}
    (root / ".git/commondir").symlink_to("nowhere")
    assert root / ".git/commondir" in git_folders(root)[0].guarded
    found = git_folders(root)
    assert [one for one in found if not one.path.is_relative_to(root)] == []
    assert [one for one in found if one.path.is_relative_to(root / "sub")] == []


def test_no_repository_has_none(tmp_path: Path) -> None:
    assert git_folders(tmp_path) == ()
    (tmp_path / ".git").write_text("something else")
    assert git_folders(tmp_path) == ()


def test_a_link_counts_only_inside(root: Path, tmp_path: Path) -> None:
    (root / ".git").rename(root / "g")
    (root / ".git").symlink_to("g")
    assert paths(root) == [root / "g"]
    (root / ".git").unlink()
    (root / ".git").symlink_to(tmp_path / "root")
    assert paths(root) == []
    (tmp_path / "other").mkdir()
    (root / ".git").unlink()
    (root / ".git").symlink_to(tmp_path / "other")
    assert paths(root) == []
    (root / ".git").unlink()
    (root / ".git").symlink_to("gone")
    assert paths(root) == []


def test_a_file_that_names_a_folder_inside_counts(root: Path) -> None:
    (root / ".git").rename(root / "g")
    (root / ".git").write_text("gitdir: g\n")
    assert paths(root) == [root / "g"]


def test_a_worktree_has_its_own_and_the_common_one(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert paths(tmp_path / "tree") == [root / ".git", root / ".git/worktrees/tree"]
    (root / ".git/worktrees/tree/commondir").write_text("../../..\n")
    assert paths(tmp_path / "tree") == [root / ".git/worktrees/tree"]
    (root / ".git/worktrees/tree/gitdir").write_text(f"{tmp_path}/elsewhere/.git\n")
    assert paths(tmp_path / "tree") == []
    (root / ".git/worktrees/tree/gitdir").write_text(f"{tmp_path}/tree/other\n")
    assert paths(tmp_path / "tree") == []
    (root / ".git/worktrees/tree/gitdir").write_text("")
    assert paths(tmp_path / "tree") == []


def test_a_submodule_has_the_folder_that_names_it_back(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(root), "source")
    git(root, "submodule", "add", "-q", str(tmp_path / "source"), "sub")
    assert paths(root / "sub") == [root / ".git/modules/sub"]
    config = root / ".git/modules/sub/config"
    config.write_text(config.read_text().replace("worktree = ", "worktree = ../"))
    assert paths(root / "sub") == []


def test_somebody_elses_repository_does_not_count(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").write_text(f"gitdir: {root}/.git\n")
    assert paths(other) == []


TAME = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n# x\n; y\n\n[remote "a"]\n\turl = https://x/y\n[branch "m/n"]\n\tmerge = x\n[user]\n\tname = "a"\n[init]\n\tdefaultBranch = m\n'


def test_a_new_repository_is_tame(root: Path) -> None:
    assert is_tame(root / ".git")
    (root / ".git/config").write_text(TAME)
    assert is_tame(root / ".git")
    for hook in (root / ".git/hooks").iterdir():
        hook.unlink()
    (root / ".git/hooks").rmdir()
    assert is_tame(root / ".git")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a hook": lambda git: (git / "hooks/pre-commit").write_text("x"),
    "hooks elsewhere": lambda git: ((git / "hooks").rename(git / "h"), (git / "hooks").symlink_to("h")),
    "config.worktree": lambda git: (git / "config.worktree").write_text(""),
    "commondir": lambda git: (git / "commondir").symlink_to("gone"),
    "gitdir": lambda git: (git / "gitdir").write_text(""),
    "modules": lambda git: (git / "modules").mkdir(),
    "a wild config": lambda git: (git / "config").write_text("[core]\n\tpager = x\n"),
    "a folder as config": lambda git: ((git / "config").unlink(), (git / "config").mkdir()),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_what_may_run_something_is_not_tame(root: Path, case: str) -> None:
    CHANGES[case](root / ".git")
    assert not is_tame(root / ".git")


def test_a_link_or_a_file_is_not_tame(root: Path) -> None:
    (root / "l").symlink_to(".git")
    (root / "f").write_text("")
    assert not is_tame(root / "l")
    assert not is_tame(root / "f")
    assert not is_tame(root / "gone")


def test_the_end_of_a_long_config_is_not_overlooked_for_good(root: Path) -> None:
    (root / ".git/config").write_text("#" * (MOST_BYTES - 1) + "\n[core]\n\tpager = x\n")
    assert not is_tame(root / ".git")


@pytest.mark.parametrize(
    "line",
    [
        "[core]x", "[alias]", "[core] pager = x", '[remote "a b"]', "[include]", "pager = x", "bare = \\", "url = ext::sh",
        "url = x y", "url = https://a b", "url", "fsmonitor", "url = ",
    ],
)  # fmt: skip
def test_a_line_that_a_new_repository_has_not_is_not_tame(line: str) -> None:
    before = "[core]\n\trepositoryformatversion = 0\n"
    assert neutral_config(before) == before
    neutral = neutral_config(f"{before}{line}\n")
    assert neutral != f"{before}{line}\n"
    assert neutral_config(neutral) == neutral


@pytest.mark.parametrize(
    "url", ["http://x", "ssh://x", "git://x", "git@x:y", "/x", "./x", "../x", "file:///x"]
)
def test_addresses_that_start_nothing_are_tame(url: str) -> None:
    text = f'[core]\n\trepositoryformatversion = 0\n[remote "o"]\n\tURL = {url}\n'
    assert neutral_config(text) == text


@pytest.mark.parametrize(
    ("text", "neutral"),
    [
        ("", NEUTRAL_CONFIG),
        ("[alias]\n\tx = !evil\n", NEUTRAL_CONFIG),
        (f"{NEUTRAL_CONFIG}\tfsmonitor = evil\n\tbare = true\n", f"{NEUTRAL_CONFIG}\tbare = true\n"),
        (f"{NEUTRAL_CONFIG}\tbare = x\\\n\tpager = evil\n", NEUTRAL_CONFIG),
        (f"{NEUTRAL_CONFIG}# x\\\nbare = false\n", NEUTRAL_CONFIG),
        (f"{NEUTRAL_CONFIG}[core] pager = evil\nname = evil\n", NEUTRAL_CONFIG),
        (f"{NEUTRAL_CONFIG}[filter \"x\"]\nurl = /evil\n[user]\nname = a\n", f"{NEUTRAL_CONFIG}[user]\nname = a\n"),
        (f"{NEUTRAL_CONFIG}name = a\x0bpager = evil\n", NEUTRAL_CONFIG),
        (f"{NEUTRAL_CONFIG}name = a\rpager = evil\n", NEUTRAL_CONFIG),
        ("name = a\n", NEUTRAL_CONFIG),
    ],
)  # fmt: skip
def test_of_a_configuration_only_what_runs_nothing_is_kept(text: str, neutral: str) -> None:
    assert neutral_config(text) == neutral
    assert neutral_config(neutral) == neutral


def test_hooks_that_git_runs_are_known_by_their_names() -> None:
    assert is_tame_hooks(["pre-commit.sample", "x.sample"])
    assert is_tame_hooks([])
    assert not is_tame_hooks(["pre-commit.sample", "pre-commit"])
