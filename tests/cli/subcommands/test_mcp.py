"""`tiller mcp` changes one server of mcp.json at a time, and lists what a session of the folder would have."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import mcp

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that the command runs in."""
    made = tmp_path / "project"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def run(tmp_path: Path, *words: str) -> int:
    parser = argparse.ArgumentParser(prog="tiller mcp")
    mcp.add_arguments(parser)
    variables = {
        "TILLER_CONFIG_DIR": str(tmp_path / "c"),
        "TILLER_DATA_DIR": str(tmp_path / "d"),
        "TILLER_RUNTIME_DIR": str(tmp_path / "r"),
        "TOKEN": "t",
    }
    return mcp.main(parser.parse_args(words), Environment(variables))


def written(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))["mcpServers"]


def test_a_command_and_a_url_are_added_listed_and_removed(tmp_path: Path, capsys: Capture) -> None:
    command = ("docs", "--network", "--env", "A=${TOKEN}", "--", "npx", "-y", "docs-mcp")
    assert run(tmp_path, "add", *command) == 0
    assert run(tmp_path, "add", "web", "https://host/mcp", "--header", "X-Key=${TOKEN}") == 0
    path = tmp_path / "c" / "mcp.json"
    assert written(path) == {
        "docs": {
            "command": "npx",
            "args": ["-y", "docs-mcp"],
            "env": {"A": "${TOKEN}"},
            "needs": ["network"],
        },
        "web": {"url": "https://host/mcp", "headers": {"X-Key": "${TOKEN}"}},
    }
    _ = capsys.readouterr()
    assert run(tmp_path, "list") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["docs", "npx", "-y", "docs-mcp", "with", "A", "and", "the", "network"],
        ["web", "https://host/mcp"],
    ]
    assert run(tmp_path, "remove", "docs") == 0
    assert set(written(path)) == {"web"}


def test_a_projects_server_is_listed_only_where_the_folder_is_trusted(
    tmp_path: Path, folder: Path, capsys: Capture
) -> None:
    assert run(tmp_path, "add", "here", "--project", "--", "tool") == 0
    assert written(folder / ".tiller" / "mcp.json") == {"here": {"command": "tool"}}
    _ = capsys.readouterr()
    assert run(tmp_path, "list", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["servers"] == []
    assert said["problems"] == [
        f"{folder} is not trusted, so the servers that it names are not used; to trust it: tiller trust add"
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "a__b", "--", "x"), "cannot be the name of a server"),
        (("add", "old", "--", "x"), "names 'old' already"),
        (("add", "new", "--env", "A", "--", "x"), "write NAME=VALUE"),
        (("add", "new", "https://h/mcp", "--network"), "for servers with a command"),
        (("add", "new", "--header", "a=b", "--", "x"), "for servers with a URL"),
        (("remove", "new"), "does not name 'new'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(
    tmp_path: Path, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "c" / "mcp.json"
    path.parent.mkdir()
    before = '{"mcpServers": {"old": {"command": "y"}}}'
    _ = path.write_text(before)
    assert run(tmp_path, *words) == 2
    assert said in capsys.readouterr().err
    assert path.read_text("utf-8") == before


def test_a_broken_file_is_left_as_it_is(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "c" / "mcp.json"
    path.parent.mkdir()
    _ = path.write_text("{")
    assert run(tmp_path, "add", "new", "--", "x") == 2
    assert "repair it first" in capsys.readouterr().err
    assert path.read_text("utf-8") == "{"
