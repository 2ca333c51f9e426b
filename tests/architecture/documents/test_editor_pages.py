"""The set-up pages name commands, options and files that exist, and their settings can be read."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.pages import EDITORS, blocks, page
from tiller_server.lsp.methods import COMMANDS
from tiller_server.lsp.wire.capabilities import AgentOptions

PAGES = sorted(path.name for path in EDITORS.glob("*.md"))
COMMAND = re.compile(r"`(?::\w+ )?(tiller\.[a-z]\w*)`")
INTERNAL = {"tiller.answer", "tiller.fix", "tiller.implement", "tiller.explain", "tiller.comment"}
"""What code actions run; nobody types it."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_commands_that_there_are(name: str) -> None:
    named = set(COMMAND.findall(page(name)))
    assert named <= set(COMMANDS)


def test_the_overview_names_every_command() -> None:
    assert set(COMMAND.findall(page("README.md"))) >= set(COMMANDS) - INTERNAL


def test_every_editor_is_on_the_overview() -> None:
    linked = set(re.findall(r"\((\w+\.md)\)", page("README.md")))
    assert linked == set(PAGES) - {"README.md"}


@pytest.mark.parametrize("name", PAGES)
def test_settings_on_a_page_can_be_read(name: str) -> None:
    for one in blocks(name):
        if one.language == "toml":
            _check(_agent_of(tomllib.loads(one.text)))
        elif one.language == "json":
            _check(_agent_of(json.loads(one.text)))


def test_every_page_says_where_the_log_is() -> None:
    assert [name for name in PAGES if "tiller daemon logs" not in page(name)] == []


def test_every_page_with_commands_says_how_to_sign_in_and_choose_a_model() -> None:
    telling = {name for name in PAGES if {"signIn", "model"} <= set(re.findall(r"\w+", page(name)))}
    assert set(PAGES) - telling == {"zed.md", "jetbrains.md"}


def _agent_of(settings: Any) -> Any:
    """Find what is for `initializationOptions.agent`, wherever the editor keeps it."""
    if not isinstance(settings, dict):
        return None
    if "agent" in settings:
        return settings["agent"]
    return next((found for one in settings.values() if (found := _agent_of(one)) is not None), None)


def _check(agent: object) -> None:
    if agent is not None:
        _ = AgentOptions.model_validate(agent)


def test_a_page_is_a_page_for_people() -> None:
    lines = {name: page(name).count("\n") for name in PAGES}
    assert {name: count for name, count in lines.items() if count > 130} == {}


def test_the_folder_holds_pages_alone() -> None:
    assert {path.name for path in Path(EDITORS).iterdir()} == set(PAGES)
