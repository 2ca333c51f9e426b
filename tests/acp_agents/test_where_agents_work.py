"""Where external agents work: contained, in a worktree, and again after an interruption."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.session import AgentSession
from tests.support.acp.agent_office import SCRIPTED, AgentOffice, scripted
from tests.support.mcp.mcp_office import text_of_file
from tests.support.workspace.contained import require_full
from tests.support.workspace.repositories import Repository

pytestmark = pytest.mark.timeout(60)


def committed(root: Path) -> None:
    """Make a repository with one file."""
    repository = Repository(root)
    _ = repository.commit("first", {"a.txt": "old\n"})


async def test_an_agent_is_contained_like_a_command(office: AgentOffice, tmp_path: Path) -> None:
    await to_thread.run_sync(require_full)
    office.agents(robot=scripted(), settings={"sandbox": "auto"})
    async with office.session(trusted=True) as session:
        inside = await office.give(session, ["put", "a.txt", "x"], ["say", "Done."])
        outside = await office.give(
            session, ["put", str(tmp_path / "b.txt"), "x"], ["say", "Done."]
        )
    assert inside.endswith("Done.")
    # Its folder for temporary files is its own.
    assert outside.endswith("Done.")
    assert (office.folder.root / "a.txt").read_text("utf-8") == "x"
    assert not (tmp_path / "b.txt").exists()


async def test_a_command_in_a_terminal_is_contained_also_where_the_agent_is_not(
    office: AgentOffice, tmp_path: Path
) -> None:
    await to_thread.run_sync(require_full)
    office.agents(robot=scripted(sandbox="off"), settings={"sandbox": "auto"})
    inside, outside = office.folder.root / "a.txt", tmp_path / "b.txt"
    async with office.session(trusted=True) as session:
        report = await office.give(
            session,
            ["run", "touch", str(inside)],
            ["run", "touch", str(outside)],
            ["put", str(tmp_path / "c.txt"), "x"],
            ["recap"],
        )
    assert "(0, None)" in report
    assert inside.exists()
    assert not outside.exists()
    assert (tmp_path / "c.txt").exists()


async def test_an_agent_works_in_the_worktree_of_its_task(office: AgentOffice) -> None:
    office.agents(robot=scripted())
    root = office.folder.root
    await to_thread.run_sync(committed, root)
    async with office.session(trusted=True) as session:
        report = await office.give(
            session,
            ["write", "a.txt", "new\n"],
            ["put", "b.txt", "more\n"],
            ["about"],
            isolation="worktree",
        )
        (task,) = office.tasks
        assert task.worktree is not None
        _ = await session.tasks.merges.merge("t1")
    assert (root / "a.txt").read_text("utf-8") == "new\n"
    assert str(root) not in report
    assert "a.txt" in report
    assert "b.txt" in report


async def test_a_task_that_was_interrupted_begins_again_with_what_was_reported(
    office: AgentOffice, tmp_path: Path
) -> None:
    office.agents(robot=scripted())
    marker = tmp_path / "begun"
    async with office.session(trusted=True) as session:
        steps = (["count"], ["read", "none.txt"], ["wait", str(marker)])
        _ = await office.give(session, *steps, background=True)
        _ = await text_of_file(marker)
        id_ = session.id
    marker.unlink()
    async with office.session(trusted=True, session=id_) as session:
        task = await session.tasks.resume("t1")
        assert task.state == "queued"
        _ = await text_of_file(marker)
        (child,) = [*office.folder.dirs.data.glob("sessions-of-tasks/*/*.jsonl")]
        told = re.findall(r"resumed with \d texts", await to_thread.run_sync(child.read_text))
        # Instructions and prompt; then also what was reported, which may be cut off, and the order to go on.
        assert told[0] == "resumed with 2 texts"
        assert told[1] in {"resumed with 4 texts", "resumed with 5 texts"}
        stopped = await session.tasks.stop_for_user("t1")
        assert stopped.state == "cancelled"


async def test_an_agent_that_stores_its_sessions_goes_on_in_the_one_of_its_task(
    office: AgentOffice, tmp_path: Path
) -> None:
    office.agents(robot=scripted(args=[str(SCRIPTED), "--loads"]))
    marker = tmp_path / "begun"
    async with office.session(trusted=True) as session:
        steps = (["say", "First."], ["read", "none.txt"], ["wait", str(marker)])
        _ = await office.give(session, *steps, background=True)
        _ = await text_of_file(marker)
        id_ = session.id
    async with office.session(trusted=True, session=id_) as session:
        _ = await session.tasks.resume("t1")
        report = await session.tasks.results(["t1"], wait_s=20)
    assert report[0].text.endswith("went on in s1 with 1 texts")


async def test_what_a_user_says_to_a_working_agent_is_its_next_prompt(
    office: AgentOffice, tmp_path: Path
) -> None:
    office.agents(robot=scripted())
    told: list[AgentSession] = []

    @asynccontextmanager
    async def on_task(_: object, session: AgentSession) -> AsyncGenerator[None]:
        told.append(session)
        yield

    marker = tmp_path / "begun"
    async with office.session(trusted=True, on_task=on_task) as session:
        steps = (["pause", str(marker)], ["write", "a.txt", "x"], ["say", "First."])
        _ = await office.give(session, *steps, background=True)
        _ = await text_of_file(marker)
        await told[0].steer('[["say", "Second."]]')
        await to_thread.run_sync(Path(f"{marker}.go").touch)
        report = await session.tasks.results(["t1"], wait_s=20)
    assert (office.folder.root / "a.txt").exists()
    assert report[0].text.endswith("Second.")
