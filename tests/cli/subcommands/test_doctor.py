"""`tiller doctor` says what works on this machine, and what to do about what does not."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_core.workspace.sandbox import Prober, SandboxCapability
from agent_core.workspace.sandbox.selection import find_program
from tiller_server.cli.doctor.system import workspace_size
from tiller_server.cli.environment import Environment
from tiller_server.cli.subcommands import doctor

FULL = SandboxCapability(level="full", how="bubblewrap 0.8.0", program="/usr/bin/bwrap")
NONE = SandboxCapability(
    level="none", how="nothing", why_not_full="bubblewrap is not installed: do so"
)

needs_bubblewrap = pytest.mark.skipif(
    find_program("bwrap") is None, reason="bubblewrap is not installed, which doctor reports"
)


def run(
    tmp_path: Path,
    containing: SandboxCapability,
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
        (
            '{"mcpServers": {"a": {"command": "no-such", "disabled": true}}}',
            "ok",
            "switched off: a",
        ),
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
    assert run(tmp_path, FULL, as_json=True) == 1
    row = rows(capsys)["MCP servers"]
    assert row["status"] == status
    assert found in str(row["found"])


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str | None]]:
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)["checks"]}


def test_what_works_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, FULL, as_json=True) == 1
    found = rows(capsys)
    assert found["containment"] == {
        "name": "containment",
        "status": "ok",
        "found": f"full, by bubblewrap 0.8.0, for {tmp_path / 'ws'}",
        "advice": None,
    }
    assert found["promises"]["status"] == "ok"


@pytest.mark.parametrize(
    ("many", "status", "found"),
    [
        (7, "ok", "7 files and folders"),
        (
            6,
            "note",
            "7 files and folders: the first contained command of each session waits some 0 s until all were looked at, later commands do not",
        ),
    ],
)
def test_what_a_large_workspace_costs_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], many: int, status: str, found: str
) -> None:
    for name in ("a/b/one", "a/two", "c/three"):
        (tmp_path / "ws" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ws" / name).touch()
    (tmp_path / "ws" / "link").symlink_to("a")
    size = workspace_size(tmp_path / "ws", many=many)
    assert (size.status, size.found) == (status, found)
    assert run(tmp_path, FULL, as_json=True) == 1
    assert rows(capsys)["workspace size"]["found"] == "7 files and folders"
    assert run(tmp_path, NONE, as_json=True) == 1
    assert "workspace size" not in rows(capsys)


@needs_bubblewrap
def test_the_exit_code_tells_whether_something_does_not_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, FULL, ANTHROPIC_API_KEY="sk-ant-x") == 0
    assert "0 of" in capsys.readouterr().out.splitlines()[-1]
    assert run(tmp_path, NONE, ANTHROPIC_API_KEY="sk-ant-x") == 1
    assert "MISSING" in capsys.readouterr().out


def test_what_does_not_work_comes_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, NONE, as_json=True) == 1
    found = rows(capsys)
    assert found["containment"]["status"] == "missing"
    assert found["containment"]["advice"] == NONE.why_not_full
    assert found["promises"]["status"] == "missing"
    for row in found.values():
        assert row["status"] == "ok" or row["advice"]


def test_a_workspace_that_cannot_be_contained_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, FULL, as_json=True, workspace="/") == 1
    assert "open a folder of the project" in str(rows(capsys)["containment"]["advice"])


def test_containment_that_is_switched_off_is_told_and_works_as_it_should(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c/settings.json").write_text('{"sandbox": "off"}')
    _ = run(tmp_path, FULL, as_json=True)
    row = rows(capsys)["containment"]
    assert (row["status"], '"sandbox" is "off"' in str(row["advice"])) == ("note", True)


def test_variables_that_commands_get_and_do_not_get_are_listed_without_their_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {
        "MY_TOKEN": "sesame-4711",
        "LD_PRELOAD": "x",
        "MY_FLAG": "1",
        "LANG": "C",
        "OTHER": "2",
    }
    (tmp_path / "c").mkdir()
    (tmp_path / "c/settings.json").write_text('{"containment": {"passVariables": ["MY_*"]}}')
    assert run(tmp_path, FULL, as_json=True, **given) == 1
    row = rows(capsys)["environment"]
    told = str(row["found"])
    assert told.startswith("commands get 4 variables: HOME, LANG, MY_FLAG, PATH; 6 are kept")
    assert told.endswith(": LD_PRELOAD, MY_TOKEN, OTHER, TILLER_CONFIG_DIR, TILLER_DATA_DIR, TILLER_RUNTIME_DIR")  # fmt: skip
    assert '"passVariables"' in str(row["advice"])
    assert str(tmp_path / "c/settings.json") in str(row["advice"])
    assert "sesame-4711" not in str(row)


def test_what_commands_read_of_the_home_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    for name in (".cargo/bin", ".ssh", "data", "letters"):
        (home / name).mkdir(parents=True)
    (home / ".nvm").symlink_to("/usr")
    (tmp_path / "c").mkdir()
    settings = tmp_path / "c/settings.json"
    settings.write_text('{"containment": {"readPaths": ["~/data", "~/gone"]}}')
    assert run(tmp_path, FULL) == 1
    told = capsys.readouterr().out
    assert f"of {home} contained commands read ~/.cargo/bin, ~/.nvm, ~/data\n" in told
    assert f'"containment": {{"readPaths": [...]}} of {settings}' in told


def test_a_home_that_is_open_to_commands_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "c").mkdir()
    (tmp_path / "c/settings.json").write_text('{"containment": {"readPaths": ["~"]}}')
    assert run(tmp_path, FULL) == 1
    assert f"contained commands read all of {tmp_path / 'home'} but" in capsys.readouterr().out


def test_keys_that_others_can_read_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c").mkdir()
    auth = tmp_path / "c/auth.json"
    auth.write_text("{}")
    auth.chmod(0o644)
    assert run(tmp_path, FULL, as_json=True) == 1
    assert rows(capsys)["keys"]["advice"] == f"chmod 600 {auth}"


def test_every_line_of_advice_follows_what_it_is_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, NONE) == 1
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
    assert run(tmp_path, FULL, as_json=True, workspace=str(origin)) == 1
    assert rows(capsys)["repository"]["status"] == "ok"
    assert run(tmp_path, FULL, as_json=True, workspace=str(clone)) == 1
    row = rows(capsys)["repository"]
    assert (row["status"], "fetch-depth: 0" in str(row["advice"])) == ("note", True)


def test_without_a_key_it_says_how_to_get_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, FULL, as_json=True) == 1
    found = rows(capsys)
    assert found["model"]["status"] == "missing"
    assert "tiller auth login" in str(found["model"]["advice"])


@needs_bubblewrap
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
    assert run(tmp_path, FULL, as_json=True, HTTPS_PROXY=proxy) == 1
    shown = capsys.readouterr().out
    assert "the last line of 1 is torn" in shown
    assert "through a proxy (HTTPS_PROXY)" in shown
    assert "sesame-4711" not in shown
    assert run(tmp_path, FULL, as_json=True, SSL_CERT_FILE="/no/such.pem") == 1
    assert "'/no/such.pem', which is not there" in str(rows(capsys)["network"]["found"])


def test_folders_that_cannot_be_written_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    data = str(tmp_path / "file" / "d")
    assert run(tmp_path, FULL, as_json=True, TILLER_DATA_DIR=data) == 1
    row = rows(capsys)["folders"]
    assert (row["status"], data in str(row["found"])) == ("missing", True)


def test_the_ripgrep_that_searches_use_is_told_and_the_one_that_is_too_old(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old" / "rg"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'ripgrep 13.0.0'\n", "utf-8")
    old.chmod(0o755)
    path = f"{old.parent}{os.pathsep}{os.defpath}"
    _ = run(tmp_path, FULL, as_json=True, PATH=path)
    row = rows(capsys)["rg"]
    beside = Path(sys.executable).parent / "rg"
    assert row["status"] == "ok"
    assert f"({beside}); not used: 13.0.0 ({old}), older than 14.1" in str(row["found"])


@pytest.mark.parametrize(
    ("script", "found"),
    [("echo 'ripgrep 13.0.0'", "13.0.0 ({}) is older than 14.1"), (None, "so it is not used")],
    ids=["old", "none"],
)
def test_without_a_ripgrep_of_known_behaviour_the_own_search_is_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    script: str | None,
    found: str,
) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    if script is not None:
        (folder / "rg").write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        (folder / "rg").chmod(0o755)
    # The one beside this Python lies in the workspace then, so that it is none that may be used.
    workspace = str(Path(sys.executable).parent)
    _ = run(tmp_path, FULL, as_json=True, workspace=workspace, PATH=str(folder))
    row = rows(capsys)["rg"]
    assert row["status"] == "note"
    assert "Tiller searches by itself" in str(row["found"])
    assert found.format(folder / "rg") in str(row["found"])
    assert "14.1 or newer" in str(row["advice"])
