"""A setting that does not exist is told when a session opens; one that would bound the agent keeps it from opening."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel.errors import ConfigError
from agent_core.mcp.definitions import (
    COMMON_KEYS,
    HTTP_KEYS,
    STDIO_KEYS,
    read_definitions,
)
from agent_core.providers.catalog.models_file import ModelShape, ProviderShape, read_models_file
from agent_core.resources.settings.layers import Layer, load_settings_now
from agent_core.resources.settings.values import SettingsValues
from agent_core.workspace.permissions.policy.rules.entries import KEYS, NOTES
from agent_core.workspace.permissions.policy.rules.rules_file import OUTERMOST, load_rules
from tests.support.hostile.misspelt import objects, with_wrong_key
from tests.support.session.folders import Folder, notices


async def test_an_unknown_key_is_told_with_the_one_that_is_meant(folder: Folder) -> None:
    folder.settings(permision={"mode": "plan"}, budget={"usd": 1})
    async with folder.open() as session:
        told = [text for text in notices(session) if "is no setting" in text]
    path = folder.dirs.config / "settings.json"
    assert told == [
        f'{path}:1:2: "permision" is no setting, so it has no effect; did you mean "permission"?',
        f'{path}:1:33: "budget" is no setting, so it has no effect; did you mean "budgets"?',
    ]


@pytest.mark.parametrize("group", ["permission", "budgets"])
async def test_an_unknown_key_of_what_bounds_the_agent_opens_no_session(
    folder: Folder, group: str
) -> None:
    folder.settings(**{group: {"limit": 1}})
    with pytest.raises(ConfigError, match=f'"{group}.limit" is no setting, so no session begins'):
        async with folder.open():
            pass
    assert folder.files == []


async def test_settings_of_a_script_are_no_exception(folder: Folder) -> None:
    with pytest.raises(ConfigError, match=r'request settings: "budgets.dollars" is no setting'):
        async with folder.open(settings={"budgets": {"dollars": 1}}):
            pass


SETTINGS: dict[str, Any] = {
    **{key: value for key, value in SettingsValues().as_json().items() if value is not None},
    "compaction": {"enabled": True, "modelOverrides": {"a/b": {"reserveTokens": 1}}},
}
MODELS: dict[str, Any] = {
    "providers": {
        "lab": {
            "baseUrl": "http://h/v1",
            "api": "openai-completions",
            "models": [
                {
                    "id": "m",
                    "contextWindow": 9,
                    "cost": {"input": 1, "tiers": [{"inputTokensAbove": 1, "input": 2}]},
                }
            ],
            "modelOverrides": {"n": {"maxTokens": 1}},
        }
    }
}
SERVERS: dict[str, Any] = {
    "mcpServers": {
        "s": {"command": "x", "args": ["y"], "env": {"A": "b"}, "timeoutS": 3, "sandbox": "auto"},
        "t": {"url": "https://h/", "headers": {"A": "b"}, "startTimeoutS": 3},
    }
}
RULES: dict[str, Any] = {
    "version": 1,
    "rules": [
        {"id": "a", "tool": "bash", "verdict": "deny", "argvPrefix": ["rm"]},
        {"id": "b", "tool": "read", "verdict": "ask", "path": "/etc/**"},
    ],
}
FREE = ("extensionFlags", "providers", "modelOverrides", "mcpServers", "env", "headers")
"""Objects whose keys are names that people choose."""


def problems_of(kind: str, document: dict[str, Any], folder: Path) -> Sequence[str]:
    text = json.dumps(document)
    path = folder / f"{kind}.json"
    match kind:
        case "settings":
            path.write_text(text)
            return [
                str(one) for one in load_settings_now((Layer(name="user", content=path),)).problems
            ]
        case "models":
            return [str(one) for one in read_models_file(text, path=path).problems]
        case "mcp":
            read = read_definitions(document, at=path, origin="user", root=folder, env={})
            return read.problems
        case _:
            path.write_text(text)
            loaded = load_rules(path, origin="user", roots=(folder,), env_path="/usr/bin:/bin")
            return [str(one) for one in loaded.problems]


KNOWN: dict[str, frozenset[str]] = {
    "settings": frozenset(SettingsValues().as_json()),
    "models": frozenset(
        field.alias or name
        for shape in (ProviderShape, ModelShape)
        for name, field in shape.model_fields.items()
    ),
    "mcp": COMMON_KEYS | HTTP_KEYS | STDIO_KEYS,
    "policy": KEYS | NOTES | frozenset(OUTERMOST) | {"scope"},
}
DOCUMENTS = {"settings": SETTINGS, "models": MODELS, "mcp": SERVERS, "policy": RULES}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_the_files_of_the_fuzz_are_right(tmp_path: Path, kind: str) -> None:
    assert problems_of(kind, DOCUMENTS[kind], tmp_path) in ([], ())


@pytest.mark.parametrize(
    ("kind", "rounds"), [("settings", 400), ("models", 300), ("mcp", 150), ("policy", 150)]
)
def test_none_of_a_thousand_unknown_keys_is_passed_over_in_silence(
    tmp_path: Path, kind: str, rounds: int
) -> None:
    draw = random.Random(kind)  # noqa: S311 - a fuzz that can be repeated
    document = DOCUMENTS[kind]
    silent: list[str] = []
    places = [one for one in objects(document) if not (one and one[-1] in FREE)]
    for _ in range(rounds):
        place = draw.choice(places)
        changed, wrong = with_wrong_key(document, place, known=KNOWN[kind], draw=draw)
        if not problems_of(kind, changed, tmp_path):
            silent.append(f"{place}: {wrong}")
    assert silent == []
