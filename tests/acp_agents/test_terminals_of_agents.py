"""Terminals of external agents, which are judged and contained as commands of any model, and their images."""

from hashlib import sha256

import pytest
from anyio import to_thread

from agent_core.events import PermissionRequested
from tests.support.acp.agent_office import AgentOffice, scripted
from tests.support.provider.images import PNG, PNG_BASE64
from tests.support.workspace.processes import processes_with

pytestmark = pytest.mark.timeout(60)


def stored_text(office: AgentOffice, session: str) -> str:
    """Return the file of a session."""
    return next(office.folder.dirs.data.rglob(f"*{session}.jsonl")).read_text("utf-8")


async def test_an_agent_runs_commands_in_terminals(office: AgentOffice) -> None:
    office.agents(robot=scripted())
    folder = office.folder.root / "sub"
    folder.mkdir()
    async with office.session(trusted=True) as session:
        report = await office.give(
            session,
            ["run", "echo one; echo two >&2; exit 3"],
            ["run", "printf", "%s|", "a b", "$HOME"],
            ["run_with", {"cwd": str(folder)}, "pwd"],
            ["run_with", {"env": [{"name": "NAME", "value": "a b"}]}, 'echo "$NAME"'],
            ["run_with", {"output_byte_limit": 3}, "printf '\\303\\244\\303\\244'"],
            ["recap"],
        )
    assert report.endswith(
        f"one\ntwo (3, None) a b|$HOME| (0, None) {folder} (0, None) a b (0, None) …ä (0, None)"
    )


async def test_a_command_that_is_killed_has_ended_and_its_output_is_that_of_the_tool_call(
    office: AgentOffice,
) -> None:
    office.agents(robot=scripted())
    async with office.session(trusted=True) as session:
        report = await office.give(
            session, ["kill", "echo ready-4711; sleep 600", "ready-4711"], ["recap"]
        )
        (task,) = office.tasks
        stored = await to_thread.run_sync(stored_text, office, task.session)
    assert "ended: None, SIG" in report
    assert "refused: " in report
    assert "there is no terminal" in report
    assert "ready-4711\\n" in stored
    assert not await to_thread.run_sync(processes_with, "ready-4711")


@pytest.mark.parametrize(
    ("option", "said"), [("allowOnce", "hi (0, None)"), ("rejectOnce", "refused: ")]
)
async def test_a_command_is_asked_about_with_its_folder_and_variables(
    office: AgentOffice, option: str, said: str
) -> None:
    office.agents(mode="ask", robot=scripted())
    run = ["run_with", {"env": [{"name": "A", "value": "b"}]}, "npm test || echo hi"]
    async with office.session(trusted=True) as session:
        asked: list[str] = []

        def reply(event: object) -> None:
            if isinstance(event, PermissionRequested):
                asked.append(event.request.title)
                chosen = "allowOnce" if len(asked) == 1 else option
                session.permissions.answer(event.request.request, chosen)

        report = await office.give(session, run, ["recap"], during=reply, calls="allowOnce")
    assert asked[1] == "Task t1 (do it): Run env A=b bash -c 'npm test || echo hi'"
    assert said in report


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"cwd": "sub"}, "cwd must be absolute"),
        ({"env": [{"name": "A B", "value": "x"}]}, "env must be names and values"),
    ],
)
async def test_bad_parameters_are_refused(
    office: AgentOffice, more: dict[str, object], why: str
) -> None:
    office.agents(robot=scripted())
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["run_with", more, "pwd"], ["run", " "], ["recap"])
    assert why in report
    assert "command must be a text" in report


async def test_what_is_left_running_ends_with_the_task(office: AgentOffice) -> None:
    office.agents(robot=scripted())
    command = "sleep 4712"
    async with office.session(trusted=True) as session:
        _ = await office.give(session, ["leave_running", command], ["say", "Done."])
        assert not await to_thread.run_sync(processes_with, command)


async def test_too_many_terminals_are_refused(office: AgentOffice) -> None:
    office.agents(robot=scripted())
    async with office.session(trusted=True) as session:
        steps = [["leave_running", "sleep 4713"]] * 16
        report = await office.give(session, *steps, ["run", "echo x"], ["recap"])
    assert "16 terminals are open: release one first" in report
    assert not await to_thread.run_sync(processes_with, "sleep 4713")


async def test_images_of_an_agent_are_attachments_of_the_session_of_its_task(
    office: AgentOffice,
) -> None:
    office.agents(robot=scripted())
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["draw", PNG_BASE64], ["say", "Done."])
        (task,) = office.tasks
        stored = await to_thread.run_sync(stored_text, office, task.session)
    assert report.endswith("Done.")
    assert task.tool_calls == 3
    assert stored.count(f'"blob":"{sha256(PNG).hexdigest()}"') == 2
    assert stored.count(PNG_BASE64) == 1  # in the prompt of the task


async def test_what_is_no_image_is_named(office: AgentOffice) -> None:
    office.agents(robot=scripted())
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["draw", "AAAA"], ["draw", "no base64"], ["recap"])
        (task,) = office.tasks
        stored = await to_thread.run_sync(stored_text, office, task.session)
    assert task.state == "completed", report
    assert stored.count("[image]") >= 2
    assert '"blob"' not in stored
