"""The entry for the registry of ACP agents keeps to the registry's rules, and the settings on the page can be read."""

import json
import re
import tomllib
from typing import Final
from xml.etree import ElementTree as ET

from tests.support.harness.shared import ROOT
from tiller_server import VERSION

ENTRY: Final = ROOT / "packaging" / "acp-registry" / "tiller"
PAGE: Final = ROOT / "docs" / "acp-clients.md"
REQUIRED: Final = {"id", "name", "version", "description", "distribution"}
OPTIONAL: Final = {"repository", "website", "authors", "license"}
COLOURS: Final = {"currentColor", "none", "inherit"}


def test_the_entry_has_the_fields_that_the_registry_asks_for() -> None:
    entry = json.loads((ENTRY / "agent.json").read_text("utf-8"))
    assert set(entry) >= REQUIRED
    assert set(entry) <= REQUIRED | OPTIONAL
    assert re.fullmatch(r"[a-z][a-z0-9-]*", entry["id"])
    assert entry["id"] == ENTRY.name
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry["version"])
    assert entry["version"] == VERSION
    assert entry["name"]
    assert entry["description"]
    assert {path.name for path in ENTRY.iterdir()} == {"agent.json", "icon.svg"}


def test_the_entry_starts_the_command_of_the_package_at_this_version() -> None:
    entry = json.loads((ENTRY / "agent.json").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert entry["license"] == project["license"]
    (kind,) = entry["distribution"]
    assert kind == "uvx"
    assert entry["distribution"][kind] == {
        "package": f"{project['name']}=={project['version']}",
        "cmd": next(iter(project["scripts"])),
        "args": ["acp"],
    }


def test_the_icon_is_16_by_16_and_has_the_colour_of_the_theme() -> None:
    icon = ET.fromstring((ENTRY / "icon.svg").read_text("utf-8"))  # noqa: S314 - our own file
    assert (icon.get("width"), icon.get("height"), icon.get("viewBox")) == ("16", "16", "0 0 16 16")
    drawn = [
        value
        for element in icon.iter()
        for name in ("fill", "stroke", "style")
        if (value := element.get(name)) is not None
    ]
    assert set(drawn) <= COLOURS
    assert "currentColor" in drawn


def test_settings_on_the_page_start_the_agent() -> None:
    found = re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    servers = [json.loads(one)["agent_servers"]["Tiller"] for one in found]
    assert [(one["command"], one["args"]) for one in servers] == [("tiller", ["acp"])] * len(found)
    assert len(found) > 1
