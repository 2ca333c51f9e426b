"""`tiller doctor` says what works on this machine, and what to do about what does not."""

import argparse
import json
import os
import subprocess
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
    options = argparse.Namespace(
        json=as_json, workspace=workspace or str(tmp_path / "ws"), ask=False
    )
    return doctor.main(options, Environment(given | env), prober=Prober(containing))


@pytest.mark.parametrize(
    ("text", "status", "found"),
    [
        (None, "ok", "none are named in"),
        ('{"mcpServers": {"a": {"command": "/bin/sh"}, "b": {"url": "http://h/"}}}', "ok", "a, b"),
        ('{"mcpServers": {"a": {"command": "sh", "sandbox": "off"}}}', "note", "not contained: a"),
        ('{"mcpServers": {"a": {"command": "no-such"}}}', "missing", "a (no-such)"),
        ('{"mcpServers": {"a": {}}}', "note", "the server is left out"),
        ("{", "note", "is not valid JSON"),
    ],
)
def test_servers_of_tools_are_told_and_none_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, status: str, found: str
) -> None:
    if text is not None:
        (tmp_path / "c").mkdir()
        (tmp_path / "c" / "mcp.json").write_text(text, "utf-8")
    assert run(tmp_path, FULL, as_json=True) == 0
    row = rows(capsys)["MCP servers"]
    assert row["status"] == status
    assert found in str(row["found"])


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


def test_a_shallow_clone_is_told_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    origin, clone = tmp_path / "origin", tmp_path / "clone"
    name = ("-c", "user.name=x", "-c", "user.email=x@x")
    commit = ("git", *name, "commit", "-q", "--allow-empty", "-m")
    for command in (("git", "init", "-q"), (*commit, "one"), (*commit, "two")):
        origin.mkdir(exist_ok=True)
        subprocess.run(command, cwd=origin, check=True)
    subprocess.run(["git", "clone", "-q", "--depth", "1", origin.as_uri(), str(clone)], check=True)
    assert run(tmp_path, FULL, as_json=True, workspace=str(origin)) == 0
    assert rows(capsys)["repository"]["status"] == "ok"
    assert run(tmp_path, FULL, as_json=True, workspace=str(clone)) == 0
    row = rows(capsys)["repository"]
    assert (row["status"], "fetch-depth: 0" in str(row["advice"])) == ("note", True)


def test_without_a_key_it_says_how_to_get_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, FULL, as_json=True) == 0
    found = rows(capsys)
    assert found["model"]["status"] == "missing"
    assert "tiller auth login" in str(found["model"]["advice"])


def test_the_default_model_and_whether_its_price_is_known_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c").mkdir()
    lab = {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "apiKey": "sesame-4711"}
    models = {"providers": {"lab": {**lab, "models": [{"id": "m", "contextWindow": 32000}]}}}
    (tmp_path / "c/models.json").write_text(json.dumps(models), "utf-8")
    chosen = {"defaultProvider": "lab", "defaultModel": "m"}
    (tmp_path / "c/settings.json").write_text(json.dumps(chosen), "utf-8")
    assert run(tmp_path, FULL, as_json=True) == 0
    shown = capsys.readouterr().out
    assert "lab/m; its price is not known" in shown
    assert "sesame-4711" not in shown


def test_a_torn_session_a_proxy_and_a_missing_certificate_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "d/sessions/--w--"
    folder.mkdir(parents=True)
    (folder / "2026_a.jsonl").write_text("{}\n{", "utf-8")
    proxy = "http://user:sesame-4711@proxy"
    assert run(tmp_path, FULL, as_json=True, HTTPS_PROXY=proxy) == 0
    shown = capsys.readouterr().out
    assert "the last line of 1 is torn" in shown
    assert "through a proxy (HTTPS_PROXY)" in shown
    assert "sesame-4711" not in shown
    assert run(tmp_path, FULL, as_json=True, SSL_CERT_FILE="/no/such.pem") == 0
    assert "'/no/such.pem', which is not there" in str(rows(capsys)["network"]["found"])


def test_folders_that_cannot_be_written_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    data = str(tmp_path / "file" / "d")
    assert run(tmp_path, FULL, as_json=True, TILLER_DATA_DIR=data) == 0
    row = rows(capsys)["folders"]
    assert (row["status"], data in str(row["found"])) == ("missing", True)
