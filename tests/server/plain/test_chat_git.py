"""Files of ours are kept out of git by the repository's own list, and by nothing that is shared or somebody else's."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tiller_server.lsp.overlay.git_exclude import MOST_BYTES, keep_out_of_git

Git = Callable[..., str]
NAME = ".tiller/chat.md"


@pytest.fixture
def git(tmp_path: Path) -> Git:
    env = {
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PATH": "/usr/bin:/bin:/usr/local/bin",
    }

    def run(*words: str, cwd: Path) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
        ran = subprocess.run(
            ("git", *who, *words), cwd=cwd, env=env, check=True, capture_output=True, text=True
        )
        return ran.stdout

    return run


def made(folder: Path) -> Path:
    path = folder / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("words")
    return path


def repository(git: Git, folder: Path) -> Path:
    folder.mkdir()
    git("init", "-q", cwd=folder)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=folder)
    return folder


@pytest.mark.parametrize("below", ["", "packages/one"], ids=["the top", "a folder below"])
def test_git_does_not_see_the_file(git: Git, tmp_path: Path, below: str) -> None:
    top = repository(git, tmp_path / "top")
    path = made(top / below)
    assert git("status", "--porcelain", cwd=top) != ""
    keep_out_of_git(path)
    keep_out_of_git(path)
    assert git("status", "--porcelain", cwd=top) == ""
    exclude = (top / ".git/info/exclude").read_text()
    assert exclude.count(f"/{path.relative_to(top)}\n") == 1
    assert exclude.startswith("# git ls-files")


def test_in_a_worktree_and_a_submodule_git_does_not_see_it_either(git: Git, tmp_path: Path) -> None:
    top = repository(git, tmp_path / "top")
    other = repository(git, tmp_path / "other")
    git("worktree", "add", "-q", str(tmp_path / "tree"), cwd=top)
    git("submodule", "add", "-q", str(other), "sub", cwd=top)
    for folder in (tmp_path / "tree", top / "sub"):
        keep_out_of_git(made(folder))
        assert git("status", "--porcelain", cwd=folder) == ""


def test_without_a_repository_nothing_is_made(tmp_path: Path) -> None:
    path = made(tmp_path)
    keep_out_of_git(path)
    assert [*tmp_path.iterdir()] == [tmp_path / ".tiller"]


@pytest.mark.parametrize("pointer", ["gitdir: ../elsewhere", "gitdir: /etc", "hello", "", "\xff"])
def test_a_pointer_of_somebody_else_is_not_followed(tmp_path: Path, pointer: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    top = tmp_path / "top"
    path = made(top)
    (top / ".git").write_bytes(pointer.encode("latin-1"))
    keep_out_of_git(path)
    assert [*elsewhere.iterdir()] == []


@pytest.mark.parametrize("through", ["a file", "a link", "info", "a common folder"])
def test_the_list_of_another_repository_is_not_written_to(
    git: Git, tmp_path: Path, through: str
) -> None:
    other = repository(git, tmp_path / "other")
    before = (other / ".git/info/exclude").read_bytes()
    top = tmp_path / "top"
    path = made(top)
    if through == "a file":
        (top / ".git").write_text(f"gitdir: {other}/.git\n")
    elif through == "a link":
        (top / ".git").symlink_to(other / ".git")
    elif through == "info":
        (top / ".git").mkdir()
        (top / ".git/info").symlink_to(other / ".git/info")
    else:
        inner = top / "inner"
        inner.mkdir()
        (inner / "commondir").write_text(f"{other}/.git\n")
        (top / ".git").write_text("gitdir: inner\n")
    keep_out_of_git(path)
    assert (other / ".git/info/exclude").read_bytes() == before


def test_a_link_in_the_place_of_the_list_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine\n")
    top = tmp_path / "top"
    (top / ".git/info").mkdir(parents=True)
    (top / ".git/info/exclude").symlink_to(target)
    keep_out_of_git(made(top))
    assert target.read_text() == "mine\n"


def test_a_list_without_a_last_line_end_and_one_that_is_too_long(tmp_path: Path) -> None:
    exclude = tmp_path / ".git/info/exclude"
    exclude.parent.mkdir(parents=True)
    exclude.write_bytes(b"*.o")
    keep_out_of_git(made(tmp_path))
    assert exclude.read_bytes() == b"*.o\n/.tiller/chat.md\n"
    exclude.write_bytes(b"#" * (MOST_BYTES + 1))
    keep_out_of_git(made(tmp_path))
    assert exclude.stat().st_size == MOST_BYTES + 1
