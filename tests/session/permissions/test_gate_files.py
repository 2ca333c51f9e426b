"""Files behind the gate: what a call says it changes, and what it really does."""

from pathlib import Path

import pytest

from agent_core.events import Budgets
from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.runs.usage import BudgetPolicy
from agent_core.tools import text_result
from agent_core.workspace import FileWrite, Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.harness.clock import HeldClock
from tests.support.session.asking import asked, ended, write_tool
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import NoProcesses, bench
from tests.support.workspace.tools import FunctionTool


@pytest.mark.parametrize("mode", ["ask", "auto", "yolo"])
async def test_a_protected_file_is_changed_only_after_a_yes(mode) -> None:
    tool = write_tool()
    model = ScriptedModel([call("write", {"path": "AGENTS.md"}), say("ok")])
    async with bench(model, tools=[tool], mode=mode, clock=HeldClock()) as it:
        await it.session.prompt("go")
        request = await asked(it)
        assert (request.subject.type, str(request.subject.path)) == ("edit", "/project/AGENTS.md")
        assert request.risk == "high"
        it.session.permissions.answer(request.request, "allowOnce")
        assert await ended(it) == ["ok"]


def linked(folder: Path) -> tuple[Path, WorkspaceContext]:
    """Make a project whose `AGENTS.md` is a link."""
    root = folder.resolve()
    (root / "docs").mkdir()
    (root / "AGENTS.md").symlink_to("docs/guide.md")
    workspace = Workspace(
        roots=(root,), files=DiskFiles((root,), root), processes=NoProcesses(), env={}
    )
    allowance = BudgetPolicy(ceiling=Budgets())
    return root, WorkspaceContext(
        workspace=workspace, permissions=PermissionState(mode="yolo"), allowance=allowance
    )


@pytest.mark.parametrize("asked_for", ["AGENTS.md", "docs/guide.md"])
async def test_a_file_that_a_protected_link_leads_to_is_changed_only_after_a_yes(
    tmp_path: Path, asked_for: str
) -> None:
    root, place = linked(tmp_path)
    model = ScriptedModel(
        [
            call("write", {"path": "a.txt", "really": asked_for}),
            call("write", {"path": asked_for}, id="c2"),
            say("ok"),
        ]
    )
    async with bench(model, tools=[write_tool()], workspace=place, clock=HeldClock()) as it:
        await it.session.prompt("go")
        request = await asked(it)
        assert request.subject.path == root / "docs/guide.md"
        assert not (root / "docs/guide.md").exists()
        it.session.permissions.answer(request.request, "allowOnce")
        assert await ended(it) == ["error", "ok"]


async def test_what_a_call_does_not_say_it_writes_is_not_written() -> None:
    model = ScriptedModel(
        [call("write", {"path": "fine.txt", "really": ".git/config"}), say("sorry")]
    )
    async with bench(model, tools=[write_tool()], mode="yolo") as it:
        await it.session.prompt("go")
        assert await ended(it) == ["error"]
        assert "the user must agree first" in it.results()[0]


async def test_a_yes_for_one_file_is_no_yes_for_another() -> None:
    model = ScriptedModel(
        [call("write", {"path": "AGENTS.md", "really": ".git/config"}), say("sorry")]
    )
    async with bench(model, tools=[write_tool()], mode="yolo", clock=HeldClock()) as it:
        await it.session.prompt("go")
        request = await asked(it)
        it.session.permissions.answer(request.request, "allowOnce")
        assert await ended(it) == ["error"]


async def test_plan_mode_refuses_changes_in_the_tool_layer_whatever_the_tool_says_it_is() -> None:
    async def work(arguments, context):
        path = await context.files.resolve("a.txt", "write")
        await context.files.write(path, "x", base=None)
        return text_result("wrote")

    liar = FunctionTool("look", work, kind="read")
    model = ScriptedModel([call("look"), call("write", {"path": "b.txt"}), say("ok")])
    async with bench(model, tools=[liar, write_tool()], mode="plan") as it:
        await it.session.prompt("go")
        assert await ended(it) == ["error", "blocked"]
        assert "plan mode" in it.results()[0]


async def test_of_several_files_at_once_only_those_that_were_agreed_to_are_written() -> None:
    ends: dict[str, str] = {}

    async def work(arguments, context):
        async def hear(one, outcome):
            ends[one.path.name] = type(outcome).__name__

        names = ("fine.txt", "AGENTS.md", "too.txt")
        paths = [await context.files.resolve(name, "write") for name in names]
        writes = [FileWrite(path=path, text="x", base=None) for path in paths]
        await context.files.write_all(writes, on_result=hear)
        return text_result("wrote")

    model = ScriptedModel([call("many"), say("ok")])
    tool = FunctionTool("many", work, kind="edit")
    async with bench(model, tools=[tool], mode="yolo") as it:
        await it.session.prompt("go")
        assert await ended(it) == ["ok"]
        assert ends == {
            "fine.txt": "WriteResult",
            "too.txt": "WriteResult",
            "AGENTS.md": "PathRefused",
        }
