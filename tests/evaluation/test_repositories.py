"""Repositories of tasks are the same at every time, and hold nothing from after the base."""

import os
from pathlib import Path

import pytest

from tests.support.workspace.evaluation_tasks import write_task
from tests.support.workspace.repositories import Repository
from tiller_server.evaluation.errors import TaskInvalid
from tiller_server.evaluation.tasks.repositories import (
    CountedChange,
    GitCommandFailed,
    GitRunner,
    make_repository,
    working_state,
    write_files,
)
from tiller_server.evaluation.tasks.task import load_task

GIT = GitRunner({"PATH": os.defpath})


def bundled(folder: Path) -> tuple[str, str]:
    """Turn a task into one with a bundle of two commits; return both."""
    source = Repository(folder / "source")
    source.commit("Base", {"sums.py": "def add(a, b):\n    return a - b\n"})
    base = source.git("rev-parse", "HEAD")
    source.commit("Solution", {"sums.py": "def add(a, b):\n    return a + b\n"})
    source.git("bundle", "create", "-q", str(folder / "repo.bundle"), "--all")
    (folder / "repo" / "sums.py").unlink()
    (folder / "repo").rmdir()
    return base, source.git("rev-parse", "HEAD")


def test_a_folder_always_becomes_the_same_commit(tmp_path: Path) -> None:
    loaded = load_task(write_task(tmp_path))
    first = make_repository(GIT, loaded, tmp_path / "a")
    again = make_repository(GIT, loaded, tmp_path / "b")
    assert first.base == first.head == again.base
    pinned = load_task(write_task(tmp_path, base_commit=first.base))
    assert make_repository(GIT, pinned, tmp_path / "c").base == first.base
    other = load_task(write_task(tmp_path, base_commit="0" * 40))
    with pytest.raises(TaskInvalid, match=f"base_commit: repo is the commit {first.base}, not 000"):
        make_repository(GIT, other, tmp_path / "d")


def test_of_a_bundle_only_what_the_base_reaches_is_there(tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    base, solution = bundled(folder)
    write_task(tmp_path, base_commit=base)
    (folder / "repo" / "sums.py").unlink()
    (folder / "repo").rmdir()
    repository = make_repository(GIT, load_task(folder), tmp_path / "made")
    assert repository.base == base
    assert (tmp_path / "made/sums.py").read_text("utf-8").endswith("a - b\n")
    with pytest.raises(GitCommandFailed):
        GIT.run(tmp_path / "made", "cat-file", "-e", solution)


def test_a_broken_bundle_and_an_unknown_commit_are_named(tmp_path: Path) -> None:
    folder = write_task(tmp_path, base_commit="1" * 40)
    bundled(folder)
    with pytest.raises(
        TaskInvalid, match=r"task\.json: base_commit: repo\.bundle has no commit '1"
    ):
        make_repository(GIT, load_task(folder), tmp_path / "a")
    (folder / "repo.bundle").write_bytes(b"no bundle")
    with pytest.raises(TaskInvalid, match=r"task\.json: repo\.bundle: git cannot read it \("):
        make_repository(GIT, load_task(folder), tmp_path / "b")


def test_changes_are_counted_by_file_also_of_commits(tmp_path: Path) -> None:
    loaded = load_task(write_task(tmp_path))
    kept = make_repository(GIT, loaded, tmp_path / "kept")
    work = make_repository(GIT, loaded, tmp_path / "work").folder
    (work / "sums.py").write_text("def add(a, b):\n    return a + b\n", "utf-8")
    GIT.run(work, "commit", "-q", "-a", "-m", "x")
    (work / "new.txt").write_text("1\n2\n", "utf-8")
    (work / "__pycache__").mkdir()
    (work / "__pycache__" / "x.pyc").touch()
    state = working_state(GIT, kept, work)
    assert state.changes == (
        CountedChange(path="new.txt", lines=2),
        CountedChange(path="sums.py", lines=2),
    )
    assert "+    return a + b\n" in state.patch
    write_files(GIT, kept, state.tree, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["new.txt", "sums.py"]
