"""An external agent works on a task: its text is the report, its requests are judged like calls of a model."""

import pytest

from agent_core.events import PermissionRequested
from tests.support.acp.agent_office import AgentOffice, scripted


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
        reports = [
            await office.give(session, step)
            for step in (
                ["read", "a.txt", 2, 2],
                ["read", "../elsewhere.txt"],
                ["read", "relative:a.txt"],
                ["write", "../elsewhere.txt", "x"],
            )
        ]
    assert reports[0].endswith("read: 2\n3")
    for report in reports[1:]:
        assert "refused: " in report
    assert "path must be absolute" in reports[2]
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
