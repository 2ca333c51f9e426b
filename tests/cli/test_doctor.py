"""`tiller doctor` says what works on this machine, and what to do about what does not."""

import argparse
import json
import os
from pathlib import Path

import pytest

from agent_core.workspace.sandbox import Containing, Prober
from server.cli import doctor
from server.cli.environment import Environment

FULL = Containing(level="full", how="bubblewrap 0.8.0", program="/usr/bin/bwrap")
NONE = Containing(level="none", how="nothing", why_not_full="bubblewrap is not installed: do so")


def run(
    tmp_path: Path,
    containing: Containing,
    *,
    as_json: bool = False,
    workspace: str = "",
    **env: str,
) -> int:
    given = {
        "PATH": os.defpath,
        "HOME": str(tmp_path / "home"),
        "TILLER_CONFIG_DIR": str(tmp_path / "c"),
        "TILLER_DATA_DIR": str(tmp_path / "d"),
        "TILLER_RUNTIME_DIR": str(tmp_path / "r"),
    }
    (tmp_path / "ws").mkdir(exist_ok=True)
    options = argparse.Namespace(json=as_json, workspace=workspace or str(tmp_path / "ws"))
    return doctor.main(options, Environment(given | env), prober=Prober(containing))


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str | None]]:
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)["checks"]}


def test_what_works_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, FULL, as_json=True) == 0
    found = rows(capsys)
    assert found["containment"] == {
        "name": "containment",
        "status": "ok",
        "found": f"full, by bubblewrap 0.8.0, for {tmp_path / 'ws'}",
        "advice": None,
    }
    assert found["promises"]["status"] == "ok"


def test_what_does_not_work_comes_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, NONE, as_json=True) == 0
    found = rows(capsys)
    assert found["containment"]["status"] == "missing"
    assert found["containment"]["advice"] == NONE.why_not_full
    assert found["promises"]["status"] == "missing"
    for row in found.values():
        assert row["status"] == "ok" or row["advice"]


def test_a_workspace_that_cannot_be_contained_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, FULL, as_json=True, workspace="/") == 0
    assert "open a folder of the project" in str(rows(capsys)["containment"]["advice"])


def test_containment_that_is_switched_off_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c/settings.json").write_text('{"sandbox": "off"}')
    assert run(tmp_path, FULL, as_json=True) == 0
    assert '"sandbox" is "off"' in str(rows(capsys)["containment"]["advice"])


def test_names_that_commands_do_not_see_are_listed_without_their_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, FULL, MY_TOKEN="sesame-4711", LD_PRELOAD="x") == 0
    shown = capsys.readouterr().out
    assert "LD_PRELOAD, MY_TOKEN" in shown
    assert "sesame-4711" not in shown


def test_keys_that_others_can_read_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c").mkdir()
    auth = tmp_path / "c/auth.json"
    auth.write_text("{}")
    auth.chmod(0o644)
    assert run(tmp_path, FULL, as_json=True) == 0
    assert rows(capsys)["keys"]["advice"] == f"chmod 600 {auth}"


def test_every_line_of_advice_follows_what_it_is_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, NONE) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("MISSING containment"))
    assert lines[at + 1].strip() == f"→ {NONE.why_not_full}"


def test_a_folder_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, FULL, workspace=str(tmp_path / "gone")) == 2
    assert str(tmp_path / "gone") in capsys.readouterr().err
