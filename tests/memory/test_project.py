"""A project is known by its repository, wherever it is checked out."""

from pathlib import Path

import pytest

from agent_core.memory.project import repository_name
from tests.memory.conftest import MemoryGround
from tests.support.workspace.repositories import Repository


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example/Team/app.git",
        "https://user:secret@git.example/Team/app",
        "ssh://git@GIT.example:22/Team/app.git",
        "git@git.example:Team/app.git",
    ],
)
def test_an_address_has_one_name_for_all_protocols(url: str) -> None:
    assert repository_name(url) == "git.example/Team/app"


async def test_clones_and_worktrees_are_one_project(ground: MemoryGround, tmp_path: Path) -> None:
    origin = Repository(tmp_path / "one")
    origin.commit("Begin", {"a.txt": "a"})
    origin.git("remote", "add", "origin", "git@git.example:team/app.git")
    origin.git("worktree", "add", "--quiet", str(tmp_path / "tree"), "-b", "other")
    origin.git("clone", "--quiet", str(origin.root), str(tmp_path / "two"))
    clone = Repository(tmp_path / "two")
    clone.git("remote", "set-url", "origin", "https://git.example/team/app")
    (tmp_path / "two" / "src").mkdir()
    keys = {
        (await ground.open(tmp_path / folder)).project.key
        for folder in ("one", "tree", "two", "two/src")
    }
    assert len(keys) == 1
    origin.commit("More", {"b.txt": "b"})
    again = await MemoryGround(tmp_path / "fresh").open(tmp_path / "one")
    assert {again.project.key} == keys


async def test_another_history_another_address_and_another_folder_are_other_projects(
    ground: MemoryGround, tmp_path: Path
) -> None:
    keys: list[str] = []
    for name, text, url in (
        ("a", "1", "git@git.example:team/app.git"),
        ("b", "2", "git@git.example:team/app.git"),
        ("c", "1", "git@git.example:team/other.git"),
        ("d", "1", None),
        ("e", "1", None),
    ):
        repository = Repository(tmp_path / name)
        repository.commit("Begin", {"a.txt": text})
        if url is not None:
            repository.git("remote", "add", "origin", url)
        keys.append((await ground.open(tmp_path / name)).project.key)
    keys += [(await ground.open(tmp_path / name)).project.key for name in ("f", "g")]
    assert len(set(keys)) == len(keys)


async def test_a_shallow_clone_has_entries_of_its_own(ground: MemoryGround, tmp_path: Path) -> None:
    origin = Repository(tmp_path / "one")
    origin.commit("Begin", {"a.txt": "a"})
    origin.commit("More", {"a.txt": "b"})
    url = origin.root.as_uri()
    origin.git("clone", "--quiet", "--depth=1", url, str(tmp_path / "two"))
    origin.git("remote", "add", "origin", url)
    whole, shallow = [await ground.open(tmp_path / name) for name in ("one", "two")]
    assert whole.project.key != shallow.project.key
