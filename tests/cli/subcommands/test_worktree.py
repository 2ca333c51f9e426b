"""`tiller worktree` lists, compares, merges and removes, and says what it did."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agent_core.assembly.workspace import open_worktrees
from agent_core.kernel import SystemClock
from agent_core.resources.paths import app_paths
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.support.session.entries import chain, header, user
from tests.support.workspace.repositories import Repository
from tests.support.workspace.worktrees import ENV
from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import worktree

Capture = pytest.CaptureFixture[str]


class Ground:
    """A repository with the worktree `w1`, and the command."""

    def __init__(self, tmp_path: Path) -> None:
        self.repository = Repository(tmp_path / "repo")
        self.repository.commit("Begin", {"a.txt": "one\n", ".gitignore": "*.log\n"})
        self.env = {
            **ENV,
            "TILLER_DATA_DIR": str(tmp_path / "d"),
            "TILLER_CONFIG_DIR": str(tmp_path / "c"),
        }
        self.data = tmp_path / "d"
        self.path = self.data / "worktrees" / "w1"
        anyio.run(self._make)

    async def _make(self) -> None:
        worktrees = open_worktrees(app_paths(self.env), env=self.env, clock=SystemClock())
        await worktrees.create(self.repository.root, id_="w1", owner="s1")

    def run(self, *arguments: str) -> int:
        parser = argparse.ArgumentParser(prog="tiller")
        worktree.add_arguments(parser.add_subparsers().add_parser("worktree"))
        return worktree.main(parser.parse_args(["worktree", *arguments]), Environment(self.env))

    def here(self) -> tuple[str, str]:
        return ("-C", str(self.repository.root))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_the_list_has_the_state_of_each(ground: Ground, capsys: Capture) -> None:
    assert ground.run("list", *ground.here()) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("nothing changed")
    assert second.split() == [str(ground.path)]
    (ground.path / "new.txt").write_text("new\n")
    assert ground.run(*ground.here()) == 0
    assert "1 file not committed" in capsys.readouterr().out
    assert ground.run("list", "--all", "--json") == 0
    (shown,) = json.loads(capsys.readouterr().out)["worktrees"]
    base = ground.repository.head()
    assert shown | {"created": ""} == {
        "id": "w1",
        "path": str(ground.path),
        "repository": str(ground.repository.root),
        "branch": "tiller/w1",
        "base": base,
        "session": "s1",
        "created": "",
        "state": "ready",
        "active": None,
        "changedFiles": 1,
        "ownCommits": 0,
        "merged": False,
        "problem": None,
    }


def test_outside_of_a_repository_all_must_be_asked_for(ground: Ground, capsys: Capture) -> None:
    assert ground.run("list", "-C", str(ground.data)) == 2
    assert "is in no Git repository" in capsys.readouterr().err
    assert ground.run("--json", "list", "-C", str(ground.data)) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "UnsupportedCapability"


def test_a_diff_is_shown_merged_and_removed(ground: Ground, capsys: Capture) -> None:
    (ground.path / "a.txt").write_text("two\n")
    (ground.path / "x.log").write_text("ignored\n")
    assert ground.run("diff", "w1") == 0
    assert "-one\n+two\n" in capsys.readouterr().out
    assert ground.run("remove", "w1") == 1
    assert "changes that are not committed; take them over with" in capsys.readouterr().err
    assert ground.run("merge", "w1") == 0
    assert capsys.readouterr().out.splitlines() == [
        "merged 'a.txt'",
        "nothing was committed; remove the worktree: tiller worktree remove w1",
    ]
    assert ground.repository.read("a.txt") == "two\n"
    assert ground.run("remove", "w1") == 0
    removed, ignored = capsys.readouterr().out.splitlines()
    assert removed.startswith("removed w1; its content is kept in refs/tiller/kept/w1 (")
    assert ignored.endswith("not kept: 1")
    assert ground.run("list", *ground.here()) == 0
    assert "there are no worktrees of this repository" in capsys.readouterr().err
    assert ground.run("diff", "w1") == 2
    assert "there is no worktree 'w1'" in capsys.readouterr().err


def test_force_keeps_what_only_the_worktree_has(ground: Ground, capsys: Capture) -> None:
    (ground.path / "a.txt").write_text("two\n")
    assert ground.run("remove", "w1", "--force") == 0
    assert "kept in refs/tiller/kept/w1" in capsys.readouterr().out
    assert ground.repository.git("show", "refs/tiller/kept/w1:a.txt") == "two"


def owner(ground: Ground) -> tuple[str, str]:
    return "s1", str(ground.repository.root)


def worker(ground: Ground) -> tuple[str, str]:
    return "s2", str(ground.path)


@pytest.mark.parametrize("who", [owner, worker])
def test_a_worktree_of_an_open_session_stays_until_that_is_closed(
    ground: Ground, capsys: Capture, who: Callable[[Ground], tuple[str, str]]
) -> None:
    session, cwd = who(ground)

    async def with_open_session() -> None:
        log = await JsonlStore(ground.data / "sessions", SystemClock()).create(
            header(session, cwd=cwd)
        )
        await log.append(chain(user("hello")))
        assert await anyio.to_thread.run_sync(lambda: ground.run("remove", "w1", "--force")) == 1
        await log.close()

    anyio.run(with_open_session)
    assert f"the session {session} works in the worktree 'w1'" in capsys.readouterr().err
    assert ground.run("remove", "w1") == 0
