"""`tiller trust` shows what it trusts, and what has changed since."""

import argparse
import json
from pathlib import Path

import pytest

from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import trust


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("be kind")
    return project


def run(verb: str, tmp_path: Path, *, folder: Path | None = None, as_json: bool = False) -> int:
    variables = {
        "TILLER_CONFIG_DIR": str(tmp_path / "c"),
        "TILLER_DATA_DIR": str(tmp_path / "d"),
        "TILLER_RUNTIME_DIR": str(tmp_path / "r"),
    }
    options = argparse.Namespace(verb=verb, json=as_json, folder=str(folder))
    return trust.main(options, Environment(variables))


def test_a_workspace_is_trusted_listed_and_forgotten(
    tmp_path: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("add", tmp_path, folder=project) == 0
    assert capsys.readouterr().out.splitlines() == [f"trusted {project}", "  'AGENTS.md'"]
    assert run("list", tmp_path) == 0
    assert capsys.readouterr().out.startswith(f"trusted   '{project}'  since ")
    assert run("rm", tmp_path, folder=project) == 0
    assert capsys.readouterr().out == f"forgotten: {project}\n"
    assert run("rm", tmp_path, folder=project) == 1
    assert "nothing was said of" in capsys.readouterr().err


def test_what_has_changed_is_shown_in_harmless_characters(
    tmp_path: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("add", tmp_path, folder=project)
    (project / "AGENTS.md").write_text("be kind\n\x1b]0;owned\x07\u202e")
    run("list", tmp_path)
    out = capsys.readouterr().out
    assert "changed  'AGENTS.md'" in out
    assert r"+\x1b]0;owned\x07\u202e" in out
    assert out.replace("\n", "").isprintable()
    run("list", tmp_path, as_json=True)
    (folder,) = json.loads(capsys.readouterr().out)["folders"]
    assert (folder["state"], folder["changed"]) == ("changed", ["AGENTS.md"])


def test_what_is_no_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("add", tmp_path, folder=tmp_path / "nowhere") == 2
    assert "nowhere is no folder" in capsys.readouterr().err
