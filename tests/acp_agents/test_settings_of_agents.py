"""Settings of external agents: who may name them, and what of a bad entry holds."""

from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel.json import encode
from agent_core.resources.settings.layers import Layer, LayerName, load_settings_now
from agent_core.resources.settings.values import ExternalAgentSettings, setting_keys

MINE = {"robot": {"command": "robot", "args": ["--acp"]}}


def loaded(tmp_path: Path, **layers: Any) -> tuple[dict[str, ExternalAgentSettings], list[str]]:
    """Load settings whose only key is that of the agents, one file for each layer."""
    found: list[Layer] = []
    names: tuple[LayerName, ...] = ("user", "project", "editor", "session", "request")
    for name in names:
        if name in layers:
            path = tmp_path / f"{name}.json"
            path.write_bytes(encode({"externalAgents": layers[name]}))
            found.append(Layer(name=name, content=path))
    settings = load_settings_now(found, project_trusted=True)
    return {**settings.values.external_agents}, [one.message for one in settings.problems]


def test_an_agent_has_defaults(tmp_path: Path) -> None:
    agents, problems = loaded(tmp_path, user=MINE)
    assert problems == []
    assert agents == {"robot": ExternalAgentSettings(command="robot", args=("--acp",))}
    robot = agents["robot"]
    assert (robot.network, robot.sandbox, robot.idle_timeout_s) == (True, "auto", 1800)


def test_a_trusted_project_adds_agents_and_does_not_change_those_of_the_user(
    tmp_path: Path,
) -> None:
    project = {"robot": {"command": "evil"}, "other": {"command": "o", "sandbox": "off"}}
    agents, problems = loaded(tmp_path, user=MINE, project=project)
    assert agents["robot"].command == "robot"
    assert (agents["other"].command, agents["other"].sandbox) == ("o", "auto")
    end = "may stand only in the user's own settings; it has no effect"
    assert problems == [
        f'"externalAgents.robot" {end}',
        f'"externalAgents.other.sandbox" {end}',
    ]


def test_an_editor_names_no_agents(tmp_path: Path) -> None:
    agents, problems = loaded(tmp_path, user=MINE, editor={"other": {"command": "o"}})
    assert [*agents] == ["robot"]
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"args": []}, "externalAgents.bad"),
        ({"command": ""}, "externalAgents.bad.command"),
        ({"command": "x", "env": {"A": 1}}, "externalAgents.bad.env.A"),
        ({"command": "x", "sandbox": "no"}, "externalAgents.bad.sandbox"),
        ({"command": "x", "idleTimeoutS": 0}, "externalAgents.bad.idleTimeoutS"),
    ],
)
def test_a_bad_entry_is_named_and_leaves_the_others(
    tmp_path: Path, entry: dict[str, Any], key: str
) -> None:
    agents, problems = loaded(tmp_path, user={**MINE, "bad": entry})
    assert agents["robot"].command == "robot"
    assert problems[0].startswith(f'"{key}" ')


def test_a_name_is_of_small_letters_and_digits(tmp_path: Path) -> None:
    agents, problems = loaded(tmp_path, user={**MINE, "Bad Name": {"command": "x"}})
    assert [*agents] == ["robot"]
    assert "Bad Name" in problems[0]


def test_an_unknown_key_is_named(tmp_path: Path) -> None:
    _, problems = loaded(tmp_path, user={"robot": {"command": "x", "argv": []}})
    assert '"externalAgents.robot.argv" is no setting' in problems[0]
    assert "command" in setting_keys(["externalAgents", "robot"])
