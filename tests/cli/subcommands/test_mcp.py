"""`tiller mcp` changes one server of mcp.json at a time, and lists what a session of the folder would have."""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp import mcp_servers
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
        ["docs", "on", "npx", "-y", "docs-mcp", "with", "A", "and", "the", "network"],
        ["web", "on", "https://host/mcp"],
    ]
    assert run(tmp_path, "remove", "docs") == 0
    assert set(written(path)) == {"web"}


def test_a_server_is_switched_off_and_on_and_its_file_stays_otherwise(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "c" / "mcp.json"
    path.parent.mkdir()
    entry = {"command": "y", "args": ["-z"], "_why": "ours"}
    other = {"url": "https://host/mcp", "enabled": False}
    _ = path.write_text(json.dumps({"$schema": "x", "mcpServers": {"docs": entry, "web": other}}))
    assert run(tmp_path, "disable", "docs") == 0
    assert run(tmp_path, "enable", "web") == 0
    assert capsys.readouterr().out == f"docs is off ({path})\nweb is on ({path})\n"
    assert json.loads(path.read_text("utf-8")) == {
        "$schema": "x",
        "mcpServers": {"docs": {**entry, "disabled": True}, "web": {**other, "enabled": True}},
    }
    assert run(tmp_path, "list") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["docs", "off", "y", "-z"],
        ["web", "on", "https://host/mcp"],
    ]
    assert run(tmp_path, "list", "--json") == 0
    at = {"origin": "user", "file": str(path)}
    assert json.loads(capsys.readouterr().out)["servers"] == [
        {"name": "docs", "way": "y -z", "enabled": False, **at},
        {"name": "web", "way": "https://host/mcp", "enabled": True, **at},
    ]
    assert run(tmp_path, "enable", "docs") == 0
    assert written(path)["docs"] == {**entry, "disabled": False}


def test_switching_to_the_state_that_a_server_has_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c" / "mcp.json"
    path.parent.mkdir()
    before = '{"mcpServers": {"off": {"disabled": true}, "on": {"command": "x"}}}'
    _ = path.write_text(before)
    assert run(tmp_path, "disable", "off") == 0
    assert run(tmp_path, "enable", "on") == 0
    assert path.read_text("utf-8") == before


def test_a_projects_server_is_switched_in_the_file_of_the_project(
    tmp_path: Path, folder: Path, capsys: Capture
) -> None:
    assert run(tmp_path, "add", "here", "--project", "--", "tool") == 0
    assert run(tmp_path, "disable", "here") == 2
    assert f"{tmp_path / 'c' / 'mcp.json'} does not name 'here'" in capsys.readouterr().err
    assert run(tmp_path, "disable", "here", "--project") == 0
    assert written(folder / ".tiller" / "mcp.json") == {
        "here": {"command": "tool", "disabled": True}
    }


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
        (("disable", "new"), "does not name 'new'"),
        (("enable", "new"), "does not name 'new'"),
        (("disable", "text"), "the entry of 'text' is to be an object"),
        (("enable", "text"), "the entry of 'text' is to be an object"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(
    tmp_path: Path, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "c" / "mcp.json"
    path.parent.mkdir()
    before = '{"mcpServers": {"old": {"command": "y"}, "text": "y"}}'
    _ = path.write_text(before)
    assert run(tmp_path, *words) == 2
    assert said in capsys.readouterr().err
    assert path.read_text("utf-8") == before


@pytest.mark.parametrize("words", [("add", "new", "--", "x"), ("disable", "x"), ("enable", "x")])
def test_a_broken_file_is_left_as_it_is(
    tmp_path: Path, capsys: Capture, words: tuple[str, ...]
) -> None:
    path = tmp_path / "c" / "mcp.json"
    path.parent.mkdir()
    _ = path.write_text("{")
    assert run(tmp_path, *words) == 2
    assert "repair it first" in capsys.readouterr().err
    assert path.read_text("utf-8") == "{"


def test_a_server_is_started_and_its_tools_are_listed(tmp_path: Path, capsys: Capture) -> None:
    server = Path(mcp_servers.__file__)
    assert run(tmp_path, "add", "lab", "--", sys.executable, str(server)) == 0
    _ = capsys.readouterr()
    assert run(tmp_path, "test", "lab") == 0, capsys.readouterr().err
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"lab: .+, \d+ tools", lines[0])
    assert any(line.startswith("  look ") for line in lines)
    assert not (tmp_path / "d" / "sessions").exists()
    assert run(tmp_path, "test", "lab", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["name"], answer["about"], answer["problems"]) == ("lab", "workshop 1.2", [])
    assert {"name": "look", "description": "Say a word again."} in answer["tools"]
    assert f"{len(answer['tools'])} tools" in lines[0]
    assert run(tmp_path, "disable", "lab") == 0
    assert run(tmp_path, "test", "lab") == 2
    assert capsys.readouterr().err.endswith("to switch it on: tiller mcp enable lab\n")


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("lab", "--", "no-such-program-here"), 1, "lab does not work: it cannot be started"),
        (("lab", "--", "true"), 1, '"needs": ["network"]'),
        (("lab", "--network", "--", "true"), 1, "; check its command in "),
        (("lab", "http://127.0.0.1:9/mcp"), 1, "; check its url and headers in "),
        (
            ("other", "--", "true"),
            2,
            "there is no MCP server 'lab' for this folder; there are: other",
        ),
    ],
)
def test_a_server_that_does_not_work_is_one_clear_sentence(
    tmp_path: Path, capsys: Capture, words: tuple[str, ...], code: int, why: str
) -> None:
    assert run(tmp_path, "add", *words) == 0
    _ = capsys.readouterr()
    assert run(tmp_path, "test", "lab") == code
    said = capsys.readouterr().err
    assert why in said
    assert len(said.splitlines()) == 1
