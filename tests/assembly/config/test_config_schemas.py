"""The schemas that are shipped are those of the code, and say yes and no as it does."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_core.assembly.config_schemas import FOLDER, NAMES, schemas, shipped, stale
from agent_core.kernel.json import as_object, decode
from agent_core.mcp.definitions import read_definitions
from agent_core.resources.paths import app_paths, project_folder
from agent_core.workspace.permissions.policy.rules.rules_file import load_rules
from tiller_server.cli.subcommands.config import SCHEMAS


def test_what_is_shipped_is_what_the_code_says() -> None:
    assert stale() == {}, "run: python -m agent_core.assembly.config_schemas"
    assert tuple(schemas()) == NAMES == SCHEMAS


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_schema_and_tells_what_every_key_is_for(name: str) -> None:
    schema: Any = as_object(decode(shipped(name)))
    Draft202012Validator.check_schema(schema)
    assert schema["title"]


@pytest.mark.parametrize(
    ("name", "document", "fits"),
    [
        ("settings", {"$schema": "x", "retry": {"maxRetries": 1}}, True),
        ("settings", {"_note": 1, "permission": {"// why": 1}}, True),
        ("settings", {"theme": "dark"}, False),
        ("models", {"$schema": "x", "providers": {"lab": {"_note": 1}}}, True),
        ("models", {"provider": {}}, False),
        ("models", {"providers": {"lab": {"apikey": "x"}}}, False),
        ("models", {"providers": {"lab": {"models": [{"id": "m", "contextwindow": 9}]}}}, False),
        ("settings", {"permission": {"mod": "plan"}}, False),
        ("settings", {"retry": {"maxRetries": "one"}}, False),
        ("settings", {"skills": ["~/mine", "!old-*"], "extensionConflicts": "first"}, True),
        ("settings", {"permission": {"mode": "YOLO"}}, False),
        (
            "settings",
            {
                "containment": {
                    "passVariables": ["A_B", "C_*"],
                    "readPaths": ["~/a"],
                    "hidePaths": ["/b"],
                }
            },
            True,
        ),
        ("settings", {"containment": {"passVariables": ["A*B"]}}, False),
        ("settings", {"containment": {"readPaths": ["data"]}}, False),
        ("settings", {"containment": {"hidePaths": ["data"]}}, False),
        ("models", {"providers": {"lab": {"baseUrl": "http://x", "models": [{"id": "m"}]}}}, True),
        ("models", {"providers": {"lab": {"models": [{"name": "m"}]}}}, False),
        ("models", {"providers": []}, False),
    ],
)
def test_it_takes_what_is_right_and_nothing_else(name: str, document: Any, fits: bool) -> None:
    schema: Any = decode(shipped(name))
    assert Draft202012Validator(schema).is_valid(document) is fits


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        ({}, True),
        ({"$schema": "x", "_note": 1, "mcpServers": {}}, True),
        ({"mcpserver": {}}, False),
        ({"mcpServers": {"lab": {"command": "npx", "args": ["-y"], "env": {"A": "b"}}}}, True),
        ({"mcpServers": {"lab": {"command": "x", "needs": ["network"], "timeoutS": 9}}}, True),
        ({"mcpServers": {"lab": {"command": "x", "sandbox": "off", "cwd": "sub"}}}, True),
        ({"mcpServers": {"lab": {"url": "https://x.test/mcp", "headers": {"A": "b"}}}}, True),
        ({"mcpServers": {"lab": {"type": "http", "url": "https://x.test", "_why": 1}}}, True),
        ({"mcpServers": {"lab": {"command": "x", "arg": []}}}, False),
        ({"mcpServers": {"lab": {"command": "x", "headers": {}}}}, False),
        ({"mcpServers": {"lab": {"url": "https://x.test", "sandbox": "off"}}}, False),
        ({"mcpServers": {"lab": {"url": "ftp://x.test"}}}, False),
        ({"mcpServers": {"lab": {"type": "sse", "url": "https://x.test"}}}, False),
        ({"mcpServers": {"lab": {"args": []}}}, False),
        ({"mcpServers": {"lab": {"command": "x", "needs": ["net"]}}}, False),
        ({"mcpServers": {"lab": {"command": "x", "timeoutS": 0}}}, False),
        ({"mcpServers": {"a__b": {"command": "x"}}}, False),
        ({"mcpServers": []}, False),
    ],
)
def test_mcp_json_fits_its_schema_when_the_reader_has_nothing_to_report(
    document: Any, fits: bool
) -> None:
    read = read_definitions(
        document, at=Path("mcp.json"), origin="user", root=Path("/ground"), env={}
    )
    assert (read.problems == ()) is fits
    schema: Any = decode(shipped("mcp"))
    assert Draft202012Validator(schema).is_valid(document) is fits


def rule(**keys: object) -> dict[str, object]:
    return {"rules": [{"tool": "bash", "verdict": "deny", **keys}]}


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        ({}, True),
        ({"$schema": "x", "version": 1, "note": "ours", "rules": []}, True),
        ({"rule": []}, False),
        ({"version": 2}, False),
        (rule(argvPrefix=["git", "push"], match=["git push"], notMatch=["git pull"]), True),
        (rule(reason="it deletes", _by="me"), True),
        (rule(tool="edit", path="src/**"), True),
        (rule(argv=["git"]), False),
        (rule(verdict="no"), False),
        (rule(argvPrefix="git"), False),
        (rule(argvPrefix=[]), False),
        (rule(path=""), False),
        ({"rules": [{"verdict": "deny"}]}, False),
        ({"rules": ["git"]}, False),
        ({"rules": {}}, False),
    ],
)
def test_policy_json_fits_its_schema_when_the_reader_has_nothing_to_report(
    tmp_path: Path, document: Any, fits: bool
) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(document), "utf-8")
    loaded = load_rules(file, origin="user", roots=[tmp_path], env_path="/usr/bin:/bin")
    assert (loaded.problems == ()) is fits
    schema: Any = decode(shipped("policy"))
    assert Draft202012Validator(schema).is_valid(document) is fits


CLIENT = Path(__file__).parents[3] / "vscode-client"


def test_the_extension_checks_each_file_by_its_schema_where_it_lies() -> None:
    about: Any = decode((CLIENT / "package.json").read_text("utf-8"))
    patterns: dict[str, list[str]] = {
        entry["url"]: entry["fileMatch"] for entry in about["contributes"]["jsonValidation"]
    }
    assert set(patterns) == {f"./dist/{path.name}" for path in FOLDER.glob("*.json")}
    config = app_paths({"HOME": "/home/me", "XDG_CONFIG_HOME": "/home/me/.config"}).config
    for name in NAMES:
        # VS Code puts `**/` before a pattern.
        wanted = patterns[f"./dist/{name}.schema.json"]
        assert any(f"{config}/{name}.json".endswith(f"/{end}") for end in wanted)
        # models.json is the user's alone.
        own = f"{project_folder(Path('/ground'))}/{name}.json"
        assert any(own.endswith(f"/{end}") for end in wanted) is (name != "models")
