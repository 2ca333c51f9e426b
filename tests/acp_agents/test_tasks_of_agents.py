"""An external agent works on a task: its text is the report, its requests are judged like calls of a model."""

import json
import os
import sqlite3
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from anyio import to_thread

from agent_core.events import PermissionRequested
from tests.support.acp.agent_office import LIAR, AgentOffice, liar, scripted
from tests.support.mcp.mcp_office import text_of_file
from tests.support.workspace.processes import processes_with

pytestmark = pytest.mark.timeout(60)


def last_json(report: str) -> Any:
    """Return the JSON in the last line of a report."""
    return json.loads(report.splitlines()[-1])


def is_running(process: int) -> bool:
    """Return whether a process is there."""
    return psutil.pid_exists(process)


def ledger_rows(path: Path) -> dict[tuple[str, str], list[int | None]]:
    """Return the costs of the calls for tasks, by provider and model."""
    found: dict[tuple[str, str], list[int | None]] = defaultdict(list)
    connection = sqlite3.connect(path)
    query = "SELECT provider, model, cost FROM calls WHERE purpose = 'task' ORDER BY id"
    for provider, model, cost in connection.execute(query):
        found[provider, model].append(cost)
    connection.close()
    return found


async def test_the_last_message_of_an_agent_is_the_report(office: AgentOffice) -> None:
    office.agents(robot=scripted())
    async with office.session(trusted=True) as session:
        report = await office.give(
            session,
            ["say", "I look."],
            ["tool", "Run the tests", "2 passed"],
            ["think", "So it is."],
            ["say", "It is "],
            ["say", "in a.py."],
        )
    assert report == "Task t1 (do it) completed.\nIts report:\nIt is in a.py."
    (task,) = office.tasks
    assert (task.preset, task.state, task.tool_calls) == ("robot", "completed", 2)
    assert "Run the tests" in office.activities


async def test_a_report_before_the_last_step_is_the_report(office: AgentOffice) -> None:
    office.agents(robot=scripted())
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["say", "All done."], ["plan", ["look", "done"]])
    assert report.endswith("\nAll done.")


async def test_files_are_written_through_the_session_and_an_undo_takes_them_back(
    office: AgentOffice,
) -> None:
    office.agents(robot=scripted())
    old = office.folder.root / "a.txt"
    old.write_text("old\n", "utf-8")
    async with office.session(trusted=True) as session:
        report = await office.give(
            session,
            ["read", "a.txt"],
            ["write", "a.txt", "new\n"],
            ["write", "b/c.txt", "fresh\n"],
            ["read", "a.txt"],
        )
        assert report.endswith("read: new\n".strip())
        assert old.read_text("utf-8") == "new\n"
        changed = (await session.changes.list()).files
        assert sorted(one.path.name for one in changed) == ["a.txt", "c.txt"]
        (checkpoint,) = session.checkpoints.all
        _ = await session.checkpoints.restore(checkpoint.checkpoint)
        assert old.read_text("utf-8") == "old\n"
        assert not (office.folder.root / "b" / "c.txt").exists()


async def test_an_agent_reads_lines_of_a_file_and_what_it_may_not_read_is_refused(
    office: AgentOffice,
) -> None:
    office.agents(robot=scripted())
    (office.folder.root / "a.txt").write_text("1\n2\n3\n4\n", "utf-8")
    async with office.session(trusted=True) as session:
        report = await office.give(
            session,
            ["read", "a.txt", 2, 2],
            ["read", "../elsewhere.txt"],
            ["read", "relative:a.txt"],
            ["write", "../elsewhere.txt", "x"],
            ["recap"],
        )
    assert "read: 2\n3" in report
    assert report.count("refused: ") >= 3
    assert "path must be absolute" in report
    assert not (office.folder.root.parent / "elsewhere.txt").exists()


@pytest.mark.parametrize(
    ("option", "answer"), [("allowOnce", "yes"), ("rejectOnce", "no"), ("allowRun", "yes")]
)
async def test_a_question_of_the_agent_is_asked_in_the_session_that_gave_the_task(
    office: AgentOffice, option: str, answer: str
) -> None:
    office.agents(mode="ask", robot=scripted())
    ask = ["ask", "execute", "Run tests", {"command": "npm test"}]
    async with office.session(trusted=True) as session:
        asked: list[str] = []

        def reply(event: object) -> None:
            if isinstance(event, PermissionRequested):
                asked.append(event.request.title)
                chosen = "allowOnce" if len(asked) == 1 else option
                session.permissions.answer(event.request.request, chosen)

        report = await office.give(session, ask, ask, ["recap"], during=reply, calls="allowOnce")
    assert asked[0].startswith("Task t1 (do it): Run ")
    assert asked[1] == "Task t1 (do it): Run npm test"
    assert report.endswith(f"{answer} {answer}")
    # A rule for longer is kept by the session, which answers the second question by itself.
    assert len(asked) == (2 if option == "allowRun" else 3)


async def test_changes_by_its_own_hands_are_recorded_and_undone(office: AgentOffice) -> None:
    office.agents(robot=scripted())
    old = office.folder.root / "a.txt"
    old.write_text("old\n", "utf-8")
    async with office.session(trusted=True) as session:
        _ = await office.give(
            session,
            ["put", "a.txt", "new\n"],
            ["write", "b.txt", "through the session\n"],
            ["put", "c.txt", "fresh\n"],
        )
        changed = (await session.changes.list()).files
        assert sorted(one.path.name for one in changed) == ["a.txt", "b.txt", "c.txt"]
        (checkpoint,) = session.checkpoints.all
        _ = await session.checkpoints.restore(checkpoint.checkpoint)
    assert old.read_text("utf-8") == "old\n"
    assert [one.name for one in office.folder.root.iterdir()] == ["a.txt"]


async def test_the_ledger_has_what_the_agent_told_of_its_cost(office: AgentOffice) -> None:
    office.agents(robot=scripted(), silent=scripted())
    async with office.session(trusted=True) as session:
        _ = await office.give(
            session, ["cost", 0.25], ["tool", "Build", "ok"], ["cost", 0.75], ["say", "Done."]
        )
        _ = await office.give(session, ["cost", 3, "EUR"], ["say", "Done."], preset="silent")
    assert [one.usd for one in office.tasks] == [pytest.approx(0.75), None]
    rows = ledger_rows(office.folder.dirs.data / "costs.sqlite3")
    assert rows["robot", "acp"] == [None, 25 * 10**10, 50 * 10**10]
    # Another currency is an unknown cost, not none.
    assert rows["silent", "acp"] == [None, None]


async def test_options_plan_folder_and_environment(
    office: AgentOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.folder.env["MY_TOKEN"] = "t0ken-of-mine"
    office.folder.env["OTHER_THING"] = "not for it"
    robot = scripted(options={"model": "big"}, env={"AGENT_KEY": "${MY_TOKEN}"})
    office.agents(robot=robot)
    async with office.session(trusted=True) as session:
        about = await office.give(session, ["about"])
        other = await office.give(session, ["about"], model="small")
        environment = await office.give(session, ["environment"])
        prompts = await office.give(session, ["prompts"])
    root = office.folder.root
    assert last_json(about) == {"cwd": str(root), "model": "big"}
    assert last_json(other)["model"] == "small"
    variables = last_json(environment)
    assert "OTHER_THING" not in variables
    assert "MY_TOKEN" not in variables
    # Its value is a secret, also in what the agent says.
    assert "t0ken-of-mine" not in environment
    assert "AGENT_KEY" in variables
    first, second = last_json(prompts)
    assert first.startswith("You work on a task that another agent gave you.")
    assert second == '[["prompts"]]'


@pytest.mark.parametrize(
    ("mode", "trusted", "why"),
    [
        ("plan", True, "is refused in plan mode"),
        ("yolo", False, "this workspace is not trusted yet"),
    ],
)
async def test_an_agent_is_a_command_and_is_not_started_where_none_may_run(
    office: AgentOffice, mode: str, trusted: bool, why: str
) -> None:
    office.agents(mode=mode, robot=scripted())
    async with office.session(trusted=trusted) as session:
        report = await office.give(session, ["put", "a.txt", "x"])
    assert "failed: external agent 'robot': it was not started: " in report
    assert why in report
    assert not [*office.folder.root.iterdir()]


async def test_where_nobody_can_be_asked_the_rules_decide(office: AgentOffice) -> None:
    office.configure(
        permission={"mode": "ask", "fallback": "deny"}, externalAgents={"robot": scripted()}
    )
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["say", "hello"])
    assert "and nobody can be asked here" in report
    (task,) = office.tasks
    assert task.state == "failed"


async def test_a_stopped_task_cancels_the_agent_and_ends_its_process(
    office: AgentOffice, tmp_path: Path
) -> None:
    office.agents(robot=scripted())
    marker = tmp_path / "begun"
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["wait", str(marker)], background=True)
        assert "in the background" in report
        process = int(await text_of_file(marker))
        task = await session.tasks.stop_for_user("t1")
        assert task.state == "cancelled"
        assert await text_of_file(tmp_path / "begun.cancelled") == ""
        assert not is_running(process)


async def test_a_closed_session_ends_an_agent_that_asks(
    office: AgentOffice, tmp_path: Path
) -> None:
    office.agents(robot=scripted())
    marker = tmp_path / "begun"
    async with office.session(trusted=True) as session:
        _ = await office.give(session, ["wait", str(marker)], background=True)
        process = int(await text_of_file(marker))
    assert not is_running(process)


async def test_the_minutes_of_a_task_end_it(office: AgentOffice) -> None:
    office.agents(robot=liar("never answers"))
    async with office.session(trusted=True) as session:
        report = await office.give(session, ["say", "hello"], budget={"minutes": 0.001})
        # Below this process: another test may run the same agent at the same time.
        look = partial(processes_with, str(LIAR), "never answers", below=os.getpid())
        left = await to_thread.run_sync(look)
    assert report.startswith("Task t1 (do it) stopped at its budget before it was done.")
    assert left == set()


async def test_other_questions_are_judged_as_what_they_are_about(office: AgentOffice) -> None:
    office.agents(mode="ask", robot=scripted(network=False), settings={"sandbox": "off"})
    (office.folder.root / "a.txt").write_text("x", "utf-8")
    (office.folder.root / ".env").write_text("KEY=x", "utf-8")
    steps = (
        # Run without a question: what a tool of the session may do as well.
        ["ask", "edit", "Edit a.txt", {}, "a.txt"],
        ["ask", "read", "Look", {}, "a.txt"],
        # Asked.
        ["ask", "read", "Look", {}, ".env"],
        ["ask", "read", "Look", {}, "../b.txt"],
        ["ask", "fetch", "Fetch it", {"url": "https://example.org"}],
        # Outside of the workspace: refused.
        ["ask", "delete", "Delete it", {}, "../b.txt"],
    )
    titles: list[str] = []

    def note(event: object) -> None:
        if isinstance(event, PermissionRequested):
            titles.append(event.request.title.removeprefix("Task t1 (do it): "))

    async with office.session(trusted=True) as session:
        report = await office.give(session, *steps, ["recap"], during=note, calls="allowOnce")
    assert report.endswith("yes yes yes yes yes no")
    root = office.folder.root
    assert titles[1:] == [f"Read {root}/.env", "Use external_robot", "Use external_robot"]


async def test_a_run_that_is_refused_too_often_ends_the_task(office: AgentOffice) -> None:
    office.agents(mode="ask", robot=scripted())
    ask = ["ask", "execute", "Run it", {"command": "make"}]
    asked = 0

    def reply(event: object) -> None:
        nonlocal asked
        if isinstance(event, PermissionRequested):
            asked += 1
            option = "allowOnce" if asked == 1 else "rejectOnce"
            session.permissions.answer(event.request.request, option)

    async with office.session(trusted=True) as session:
        report = await office.give(session, *[ask] * 5, during=reply, calls="rejectOnce")
    assert asked == 4
    (task,) = office.tasks
    assert task.state == "failed"
    assert "refused" in report
