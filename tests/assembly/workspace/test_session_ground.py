"""A workspace or configuration with faults, and what of it reaches the model and its commands."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel.errors import (
    ConfigError,
    UsageError,
    WorkspaceMissing,
)
from agent_core.messages import ToolResultMessage, UserMessage, text_of
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import PATH, Folder, ask, handled, notices
from tests.support.workspace.default_tools import DEFAULT_TOOLS
from tests.support.workspace.tools import echo

# What is wrong with the ground.


@pytest.mark.parametrize("what", ["missing", "file", "loop"])
async def test_a_workspace_that_is_no_folder_is_an_error(
    folder: Folder, tmp_path: Path, what: str
) -> None:
    place = tmp_path / what
    if what == "file":
        place.write_text("x", encoding="utf-8")
    elif what == "loop":
        place.symlink_to(place)
    with pytest.raises(WorkspaceMissing, match=repr(str(place))):
        async with folder.open(workspace=place):
            pytest.fail("opened")
    assert folder.files == []


async def test_broken_settings_are_told_and_what_can_be_read_of_them_holds(
    folder: Folder,
) -> None:
    folder.settings(steeringMode="all", retry={"maxRetries": "many"})
    async with folder.open() as session:
        (notice,) = notices(session)
        assert notice.startswith(f"{folder.dirs.config / 'settings.json'}:1:")
        assert '"retry.maxRetries" is "many"' in notice
        assert session.info.config.steering == "all"


@pytest.mark.parametrize(
    ("text", "where"), [("{", ":1:"), ("[]", ":"), ('{"a": 1,\n"b": }', ":2:")]
)
async def test_a_settings_file_that_is_no_json_is_told_with_its_place(
    folder: Folder, text: str, where: str
) -> None:
    folder.write("settings.json", text)
    async with folder.open() as session:
        (notice,) = notices(session)
        assert notice.startswith(f"{folder.dirs.config / 'settings.json'}{where}")
        assert session.info.config.thinking == "medium"


async def test_a_broken_models_file_is_told_and_the_known_models_stay(folder: Folder) -> None:
    folder.write("models.json", '{"providers": {"lab": {"models": 7}}}')
    async with folder.open() as session:
        (notice,) = notices(session)
        path = str(folder.dirs.config / "models.json")
        assert path in notice
        assert notice.count(path) == 1
        assert session.info.config.model == "embedded/repair"


async def test_a_torn_session_file_is_told(folder: Folder) -> None:
    async with folder.open(hooks=handled()) as session:
        await ask(session)
    (path,) = folder.files
    with path.open("ab") as file:
        file.write(b'{"type": "message", "id": "to')
    async with folder.open(session=session.id) as again:
        (notice,) = notices(again)
        assert "last line was cut off" in notice


async def test_a_relative_configuration_folder_is_refused(folder: Folder) -> None:
    with pytest.raises(UsageError, match="relative"):
        async with folder.open(env=folder.env | {"TILLER_CONFIG_DIR": "here"}):
            pytest.fail("opened")


def test_an_error_of_configuration_knows_its_place() -> None:
    error = ConfigError("no", path=Path("/x/models.json"), line=3, column=4)
    assert (str(error), error.path, error.line, error.column) == (
        "no",
        Path("/x/models.json"),
        3,
        4,
    )


# Through a provider.


def model_of(provider: LoopbackProvider, request: int = -1) -> dict[str, Any]:
    return provider.requests[request]["body"]


def system_of(body: Mapping[str, Any]) -> str:
    return next(m["content"] for m in body["messages"] if m["role"] in {"system", "developer"})


async def test_no_key_is_in_the_environment_of_a_command(
    folder: Folder, lab: LoopbackProvider
) -> None:
    write_config(folder.dirs.config, lab, settings={"permission": {"mode": "yolo"}})
    path = folder.dirs.config / "models.json"
    models = json.loads(path.read_text("utf-8"))
    models["providers"]["lab"]["apiKey"] = "$LAB_SECRET"
    models["providers"]["lab"]["headers"] = {"x-team": "${TEAM_TOKEN} on $PATH"}
    path.write_text(json.dumps(models), encoding="utf-8")
    secret = {
        "LAB_SECRET": "s3cret-1",
        "TEAM_TOKEN": "s3cret-2",
        "ANTHROPIC_API_KEY": "s3cret-3",
        "ANTHROPIC_AUTH_TOKEN": "s3cret-4",
        "OPENAI_API_KEY": "s3cret-5",
    }
    lab.script(
        [
            {"tool_calls": [{"name": "bash", "arguments": {"command": "env; echo $$"}}]},
            {"text": "done"},
        ]
    )
    env = folder.env | secret | {"TZ": "seen"}
    async with folder.open(model=None, env=env) as session:
        await ask(session)
        (result,) = [m for m in session.info.messages if isinstance(m, ToolResultMessage)]
    shown = text_of(result.content)
    assert "TZ=seen" in shown
    assert f"PATH={PATH}" in shown
    assert "s3cret" not in shown
    assert "s3cret" not in folder.files[0].read_text("utf-8")


async def test_agents_md_is_in_the_system_prompt_and_a_change_counts_from_the_next_run(
    folder: Folder, lab: LoopbackProvider
) -> None:
    write_config(folder.dirs.config, lab)
    folder.write("AGENTS.md", "Mine: be brief.\n")
    agents = folder.root / "AGENTS.md"
    agents.write_text("Rule one.\n", encoding="utf-8")
    lab.script([{"text": "a"}, {"text": "b"}])
    async with folder.open(model=None) as session:
        await ask(session)
        first = system_of(model_of(lab))
        assert first.index("Mine: be brief.") < first.index("Rule one.")
        agents.write_text("Rule two.\n", encoding="utf-8")
        await ask(session)
        second = model_of(lab)
        # What was sent stays in the provider's cache; what has changed is said beside the words.
        assert system_of(second) == first
        assert "Rule two." in str(second["messages"][-1])
        lab.script([{"text": "c"}])
        await ask(session)
        assert str(model_of(lab)["messages"]).count("Rule two.") == 1


async def test_a_tool_of_ones_own_is_offered_and_called(
    folder: Folder, lab: LoopbackProvider
) -> None:
    write_config(folder.dirs.config, lab)
    mine = echo("mine")
    lab.script([{"tool_calls": [{"name": "mine", "arguments": {"text": "x"}}]}, {"text": "done"}])
    async with folder.open(model=None, custom_tools=[mine], store="memory") as session:
        await ask(session)
        offered = [tool["function"]["name"] for tool in model_of(lab)["tools"]]
        assert offered == [*DEFAULT_TOOLS, "mine"]
        assert mine.calls == [{"text": "x"}]


async def test_a_session_goes_on_where_it_was(folder: Folder, lab: LoopbackProvider) -> None:
    write_config(folder.dirs.config, lab)
    lab.script([{"text": "first answer"}, {"text": "second answer"}])
    async with folder.open(model=None) as session:
        await ask(session, "first question")
    async with folder.open(model=None, session="latest") as again:
        await ask(again, "second question")
        said = [text_of(m.content) for m in again.info.messages if isinstance(m, UserMessage)]
        assert said == ["first question", "second question"]
    told = [m["content"] for m in model_of(lab)["messages"] if m["role"] != "system"]
    assert [str(one) for one in told][:2] == ["first question", "first answer"]
