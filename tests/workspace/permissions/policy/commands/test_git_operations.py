"""What a command line does to the data of repositories, read as someone reads it who wants more than they were given."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.workspace.permissions.policy import git_use, line_starts_programs, writes_data
from tests.workspace.permissions.policy.commands.git_lines import TABLE


@pytest.mark.parametrize("line", TABLE)
def test_a_line_is_taken_for_what_it_can_do(line: str) -> None:
    assert git_use(line) == TABLE[line]


@pytest.mark.parametrize("separator", ["&&", "||", ";", "|", "\n"])
@pytest.mark.parametrize("other", ["evil", "git -c a.b=c log", "git config a b"])
def test_one_other_command_is_enough_for_none(separator: str, other: str) -> None:
    assert git_use(f"git add a {separator} git log") == "adds"
    assert git_use(f"git add a {separator} {other}") == "none"
    assert git_use(f"{other} {separator} git add a") == "none"


def test_the_worst_of_several_counts() -> None:
    assert git_use("git log; git add a; git tag -d x") == "loses"
    assert git_use("git tag -d x; git log") == "loses"


# Where it is started with the data of repositories writable


def program(folder: Path, name: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return str(folder)


def test_data_is_writable_for_lines_that_write_it_alone(tmp_path: Path) -> None:
    path, roots = program(tmp_path / "bin", "git"), (tmp_path / "root",)
    assert writes_data("cd x && git add a 2>&1", env_path=path, roots=roots)
    assert writes_data("git tag -d x", env_path=path, roots=roots)
    assert not writes_data("git log", env_path=path, roots=roots)
    assert not writes_data("git config a b", env_path=path, roots=roots)


def test_a_git_of_the_workspace_is_none(tmp_path: Path) -> None:
    root = tmp_path / "root"
    inside, outside = program(root / "bin", "git"), program(tmp_path / "bin", "git")
    assert not writes_data("git add a", env_path=f"{inside}:{outside}", roots=(root,))
    assert not writes_data("git add a", env_path="", roots=(root,))
    program(root / "bin", "cat")
    assert not writes_data("git add a | cat", env_path=f"{outside}:{inside}", roots=(root,))


# Which repositories it works in


def repository(folder: Path, *words: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    env = {"PATH": os.defpath, "HOME": "/nonexistent"}
    subprocess.run(["git", "init", "-q", *words], cwd=folder, env=env, check=True)
    return folder


def hook(folder: Path, name: str = "hooks/pre-commit") -> None:
    (folder / name).write_text("#!/bin/sh\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    top = Path(os.path.realpath(tmp_path))
    root = repository(top / "root")
    (root / "plain/deep").mkdir(parents=True)
    repository(root / "tame")
    hook(repository(root / "wild") / ".git")
    hook(repository(root / "bare.git", "--bare"))
    hook(repository(top / "outside") / ".git")
    (root / "link").symlink_to("wild")
    (root / "tame/up").symlink_to("../wild")
    (root / "wild/inner").mkdir()
    return root


@pytest.mark.parametrize(
    "line",
    [
        "git add a",
        "git -C plain add a",
        "git -C plain -C deep add a",
        "cd plain/deep && git add a",
        "cd tame && git commit -m x",
        "cd plain/.. && git add a",
        "(cd tame; git add a); git add b",
    ],
)
def test_lines_that_stay_with_tame_repositories_start_nothing(root: Path, line: str) -> None:
    assert not line_starts_programs(line, cwd=root, roots=(root,))


@pytest.mark.parametrize(
    "line",
    [
        "git -C wild commit -m x",
        "git -C wild/inner commit -m x",
        "git -C plain -C ../wild commit -m x",
        "git --no-pager -C wild commit -m x",
        "cd wild && git commit -m x",
        "cd wild; git commit -m x",
        "cd link && git commit -m x",
        "cd tame/up/inner && git commit -m x",
        "cd tame/up/../wild && git commit -m x",
        "cd tame; cd up; git commit -m x",
        "cd plain && cd ../wild && git commit -m x",
        "cd nowhere || cd wild; git commit -m x",
        "git add a && cd wild && git commit -m x",
        "cd wild && cd .. ; git commit -m x",
        "git -C bare.git commit -m x",
        "git -C ../outside commit -m x",
        "cd ../outside && git commit -m x",
        "cd / && git commit -m x",
        "cd && git commit -m x",
        "cd - && git commit -m x",
        "cd -P wild && git commit -m x",
        "cd -- wild && git commit -m x",
        "cd tame wild; git commit -m x",
        "git commit -m $X",
    ],
)
def test_a_line_that_may_reach_another_repository_is_in_doubt(root: Path, line: str) -> None:
    assert line_starts_programs(line, cwd=root, roots=(root,))


def test_a_hook_of_the_workspace_itself_counts(root: Path) -> None:
    hook(root / ".git")
    assert line_starts_programs("git add a", cwd=root, roots=(root,))
    assert not line_starts_programs("git -C tame add a", cwd=root, roots=(root,))


def test_without_a_repository_git_starts_nothing(tmp_path: Path) -> None:
    assert not line_starts_programs("git init", cwd=tmp_path, roots=(tmp_path,))
    assert not line_starts_programs("git -C nowhere add a", cwd=tmp_path, roots=(tmp_path,))


def test_a_repository_around_the_workspace_counts(tmp_path: Path) -> None:
    (root := tmp_path / "sub").mkdir()
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    hook(tmp_path / ".git")
    assert line_starts_programs("git add a", cwd=root, roots=(root,))


# What git itself makes of lines that were once taken for harmless


def run(folder: Path, line: str) -> str:
    who = {f"GIT_{one}_{what}": "a@b" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}  # fmt: skip
    env = {"PATH": os.defpath, "HOME": "/nonexistent", "GIT_EDITOR": "true", **who}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=env, check=False, capture_output=True
    )
    return (done.stdout + done.stderr).decode()


def _runs_behind_dashes(root: Path) -> bool:
    run(root, "git rebase -X -- --exec 'touch ran' HEAD~1")
    return (root / "ran").exists()


def _deletes_unmerged(root: Path) -> bool:
    run(root, "git update-ref refs/remotes/o/x $(git commit-tree -m x HEAD^{tree})")
    run(root, "git branch -d -r o/x")
    return "o/x" not in run(root, "git for-each-ref")


def _deletes_repositories(root: Path) -> bool:
    run(root, "git clean -ffd")
    return not (root / "tame").exists()


def _writes_refs(root: Path) -> bool:
    (root / "g").symlink_to(".git")
    run(root, "echo more >> file; git diff > p; git checkout -q file")
    run(root, "git apply --build-fake-ancestor=g/refs/heads/main p")
    return (root / ".git/refs/heads/main").read_bytes()[:4] == b"DIRC"


CLAIMS: dict[str, Callable[[Path], bool]] = {
    "git rebase -X -- --exec 'touch ran' HEAD~1": _runs_behind_dashes,
    "git branch -d -r o/x": _deletes_unmerged,
    "git clean -ffd": _deletes_repositories,
    "git apply --build-fake-ancestor=g/refs/heads/main p": _writes_refs,
}


@pytest.mark.parametrize("line", CLAIMS)
def test_git_does_more_with_these_than_add(root: Path, line: str) -> None:
    run(root, "git checkout -qb main; echo x > file; git add file; git commit -qm a; echo y >> file; git commit -qam b")  # fmt: skip
    assert CLAIMS[line](root)
    assert git_use(line) in {"loses", "none"}
