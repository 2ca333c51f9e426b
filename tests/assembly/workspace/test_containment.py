"""A session's commands are contained, it says how far, and everything works without."""

import json
from pathlib import Path

import pytest

from agent_core import AgentSession
from agent_core.kernel import JsonObject
from agent_core.messages import ToolResultMessage, text_of
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder, ask, notices
from tests.support.workspace.contained import containing


def configure(folder: Folder, lab: LoopbackProvider, **settings: object) -> None:
    write_config(folder.dirs.config, lab, settings={"permission": {"mode": "yolo"}, **settings})


def script(lab: LoopbackProvider, command: str, **more: object) -> None:
    arguments = {"command": command, **more}
    lab.script([{"tool_calls": [{"name": "bash", "arguments": arguments}]}, {"text": "done"}])


def result_of(session: AgentSession) -> tuple[str, JsonObject]:
    (result,) = [m for m in session.info.messages if isinstance(m, ToolResultMessage)]
    assert isinstance(result.details, dict)
    return text_of(result.content), result.details


@pytest.fixture
def _full() -> None:
    if containing().level != "full":
        pytest.skip(f"no full containment here: {containing().why_not_full}")


@pytest.mark.usefixtures("_full")
async def test_a_command_is_kept_inside_and_the_model_is_told_why(
    folder: Folder, lab: LoopbackProvider
) -> None:
    configure(folder, lab)
    script(lab, "echo x > CLAUDE.md; cat made; echo y > made; touch /etc/tiller-probe")
    async with folder.open(model=None) as session:
        assert session.info.snapshot().sandbox == "full"
        await ask(session)
        shown, details = result_of(session)
    assert "Containment lets a command write only inside the workspace" in shown
    assert "Containment took away" in shown
    assert details["quarantined"] == [str(folder.root / "CLAUDE.md")]
    assert len(json.dumps(details["denied"])) > 0
    assert (folder.root / "made").read_text("utf-8") == "y\n"


@pytest.mark.usefixtures("_full")
async def test_it_sees_nothing_of_the_session_but_earlier_outputs(
    folder: Folder, lab: LoopbackProvider
) -> None:
    configure(folder, lab)
    script(lab, f"ls -A '{folder.dirs.config}' '{folder.dirs.data}' '{folder.dirs.runtime}'; env")
    async with folder.open(model=None) as session:
        await ask(session)
        shown, _ = result_of(session)
    assert "auth.json" not in shown
    assert "settings.json" not in shown
    assert ".jsonl" not in shown


async def test_switched_off_commands_run_as_they_are_and_that_is_shown(
    folder: Folder, lab: LoopbackProvider, tmp_path: Path
) -> None:
    configure(folder, lab, sandbox="off")
    script(lab, f"echo x > '{tmp_path}/outside' && echo wrote; echo z > CLAUDE.md")
    async with folder.open(model=None) as session:
        assert session.info.snapshot().sandbox == "none"
        assert notices(session) == []
        await ask(session)
        shown, details = result_of(session)
    assert shown == "wrote\n"
    assert "denied" not in details
    assert (tmp_path / "outside").exists()
    assert (folder.root / "CLAUDE.md").exists()


async def test_variables_that_the_settings_list_reach_commands(
    folder: Folder, lab: LoopbackProvider
) -> None:
    passed = {"passVariables": ["MY_FLAG", "MY_TOKEN"]}
    configure(folder, lab, sandbox="off", containment=passed)
    script(lab, "echo $MY_FLAG $MY_TOKEN $MY_OTHER")
    env = {**folder.env, "MY_FLAG": "1", "MY_TOKEN": "2", "MY_OTHER": "3"}
    async with folder.open(model=None, env=env) as session:
        await ask(session)
        shown, _ = result_of(session)
    assert shown == "1 2\n"


async def test_a_workspace_that_cannot_be_contained_is_told_of(
    folder: Folder, lab: LoopbackProvider
) -> None:
    configure(folder, lab)
    home = str(folder.root)
    async with folder.open(model=None, env={**folder.env, "HOME": home}) as session:
        assert session.info.snapshot().sandbox == "none"
        (notice,) = notices(session)
    assert notice.startswith("commands are not contained here: the workspace")
    assert "tiller doctor" in notice


@pytest.mark.usefixtures("_full")
async def test_the_users_own_command_runs_as_in_a_terminal(folder: Folder, tmp_path: Path) -> None:
    async with folder.open() as session:
        result = await session.execute_bash(f"echo x > '{tmp_path}/mine' && echo wrote")
    assert result.output == "wrote\n"
    assert (tmp_path / "mine").exists()


@pytest.mark.usefixtures("_full")
async def test_needs_that_nobody_knows_are_refused_with_the_known_ones(
    folder: Folder, lab: LoopbackProvider
) -> None:
    configure(folder, lab)
    script(lab, "true", needs=["root"])
    async with folder.open(model=None) as session:
        await ask(session)
        (result,) = [m for m in session.info.messages if isinstance(m, ToolResultMessage)]
    assert "network" in text_of(result.content)
    assert "gitConfig" in text_of(result.content)
