"""`tiller memory` switches memory on, keeps what it is given, and says what cannot be read."""

import argparse
import json
from pathlib import Path

import pytest

from tests.support.workspace.worktrees import ENV
from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import memory

Capture = pytest.CaptureFixture[str]


class Ground:
    """A project, and the command in it."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "project"
        self.root.mkdir()
        self.data = tmp_path / "d"
        self.env = {
            **ENV,
            "TILLER_DATA_DIR": str(self.data),
            "TILLER_CONFIG_DIR": str(tmp_path / "c"),
        }

    def run(self, *arguments: str) -> int:
        parser = argparse.ArgumentParser(prog="tiller")
        memory.add_arguments(parser.add_subparsers().add_parser("memory"))
        options = parser.parse_args(["memory", *arguments, "-C", str(self.root)])
        return memory.main(options, Environment(self.env))

    @property
    def file(self) -> Path:
        (path,) = self.data.glob("memory/projects/*/memory.md")
        return path


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def ids(ground: Ground, capsys: Capture) -> list[str]:
    capsys.readouterr()
    assert ground.run("list", "--json") == 0
    return [one["id"] for one in json.loads(capsys.readouterr().out)["entries"]]


def test_memory_is_off_until_it_is_switched_on(ground: Ground, capsys: Capture) -> None:
    assert ground.run("add", "Tests need Docker") == 2
    assert "memory is off in this project; `tiller memory on`" in capsys.readouterr().err
    assert ground.run("on") == 0
    assert f"memory is on in {ground.root}" in capsys.readouterr().out
    assert ground.run("add", "Tests need Docker") == 0
    assert ground.run("off") == 0
    assert "its entries stay" in capsys.readouterr().out
    assert ground.run("list") == 0
    said = capsys.readouterr()
    assert "Tests need Docker" in said.out
    assert "memory is off in this project, so no session uses the entries" in said.err


def test_entries_are_listed_found_shown_exported_and_removed(
    ground: Ground, capsys: Capture
) -> None:
    ground.run("on")
    ground.run("add", "Tests need Docker", "--path", "tests/**")
    ground.run("add", "Answer", "briefly", "--user", "--kind", "preference")
    first, second = ids(ground, capsys)
    assert ground.run("list") == 0
    (row, other) = capsys.readouterr().out.splitlines()
    assert row.startswith(f"{first}  ")
    assert row.endswith("project fact          Tests need Docker")
    assert other.endswith("user preference       Answer briefly")
    assert ground.run("list", "testing") == 0
    assert capsys.readouterr().out == row + "\n"
    assert ground.run("show", second) == 0
    shown = capsys.readouterr().out
    assert "kind: preference\norigin: user\ntrust: stated\n" in shown
    assert f"file: {ground.data}/memory/user.md:3" in shown
    assert ground.run("export") == 0
    assert "# What Tiller remembers in this project\n" in capsys.readouterr().out
    assert ground.run("export", "--json") == 0
    body = json.loads(capsys.readouterr().out)
    assert (body["on"], body["problems"]) == (True, [])
    assert body["entries"][0] == {
        "id": first,
        "scope": "project",
        "kind": "fact",
        "text": "Tests need Docker",
        "path": "tests/**",
        "origin": "user",
        "trust": "stated",
        "created": body["entries"][0]["created"],
    }
    assert ground.run("forget", first) == 0
    assert capsys.readouterr().out == f"removed {first}: Tests need Docker\n"
    assert ids(ground, capsys) == [second]
    assert ground.run("undo") == 0
    assert ids(ground, capsys) == [first, second]
    assert ground.run("forget", "nothing") == 2
    assert "memory has no entry 'nothing'" in capsys.readouterr().err


def test_what_was_edited_into_nonsense_is_named_with_its_line(
    ground: Ground, capsys: Capture
) -> None:
    ground.run("on")
    ground.run("add", "Tests need Docker")
    with ground.file.open("a", encoding="utf-8") as file:
        file.write("\n---\nkind: fcat\n---\nNonsense \x1b[31m\n\n---\nid: mine\n---\nBy hand\n")
    capsys.readouterr()
    assert ground.run("list") == 0
    said = capsys.readouterr()
    assert [line.split()[-1] for line in said.out.splitlines()] == ["Docker", "hand"]
    assert f"{ground.file}:13: kind 'fcat' is none of fact" in said.err


def test_without_sessions_nothing_is_proposed(ground: Ground, capsys: Capture) -> None:
    assert ground.run("consolidate") == 2
    assert "memory is off in this project" in capsys.readouterr().err
    ground.run("on")
    capsys.readouterr()
    assert ground.run("consolidate") == 0
    assert capsys.readouterr().out == "there are no new prompts in the sessions of this folder\n"
    for verb in ("review", "accept", "drop"):
        assert ground.run(verb) == 0
    assert capsys.readouterr().out == "no entries are proposed\n" * 3
