"""What a session shows of secret files: nothing before a person let it read one, and then that one to every reader."""

from pathlib import Path

import pytest

from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools import text_result
from agent_core.tools.builtin import find_tool, grep_tool, ls_tool, read_tool
from agent_core.workspace import Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.harness.clock import HeldClock
from tests.support.session.asking import asked, ended
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import bench
from tests.support.workspace.searches import NoPrograms
from tests.support.workspace.tools import FunctionTool

TOOLS = (read_tool(), grep_tool(), ls_tool(), find_tool())
GREP = call("grep", {"pattern": "KEY"})


@pytest.fixture
def place(tmp_path: Path) -> WorkspaceContext:
    for name in (".env", "prod.env", ".aws/config"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"KEY=of {name}\n", encoding="utf-8")
    (tmp_path / "linked").symlink_to(".env")
    workspace = Workspace(
        roots=(tmp_path,),
        files=DiskFiles((tmp_path,), tmp_path),
        processes=NoPrograms(),
        env={"PATH": "/usr/bin:/bin"},
    )
    return WorkspaceContext(workspace=workspace, permissions=PermissionState(mode="ask"))


@pytest.mark.parametrize("path", [".env", "linked"])
async def test_a_file_that_a_person_let_it_read_is_searched_from_then_on(
    place: WorkspaceContext, path: str
) -> None:
    model = ScriptedModel([GREP, call("read", {"path": path}), GREP, say("ok")])
    async with bench(model, tools=TOOLS, workspace=place, clock=HeldClock()) as it:
        await it.session.prompt("go")
        request = await asked(it)
        assert (request.subject.type, Path(request.subject.path).name) == ("secret", ".env")
        assert "searches of this session show it too" in request.description
        it.session.permissions.answer(request.request, "allowOnce")
        assert await ended(it) == ["ok", "ok", "ok"]
        before, _, after = it.results()
        assert before.startswith("No matches found\n\n[3 secret files were not searched")
        assert after.startswith(".env:1: KEY=of .env\n\n[2 secret files were not searched")
        assert place.secrets.allowed == {place.workspace.root / ".env"}


async def test_the_file_that_a_person_was_asked_about_is_read_also_where_a_link_means_another_by_then(
    place: WorkspaceContext,
) -> None:
    model = ScriptedModel([call("read", {"path": "linked"}), say("ok")])
    link = place.workspace.root / "linked"
    async with bench(model, tools=TOOLS, workspace=place, clock=HeldClock()) as it:
        await it.session.prompt("go")
        request = await asked(it)
        link.unlink()
        link.symlink_to("prod.env")
        it.session.permissions.answer(request.request, "allowOnce")
        assert await ended(it) == ["ok"]
        (result,) = it.results()
        assert "KEY=of .env" in result


async def test_a_no_opens_nothing(place: WorkspaceContext) -> None:
    model = ScriptedModel([call("read", {"path": ".env"}), GREP, say("ok")])
    async with bench(model, tools=TOOLS, workspace=place, clock=HeldClock()) as it:
        await it.session.prompt("go")
        it.session.permissions.answer((await asked(it)).request, "rejectOnce")
        assert await ended(it) == ["blocked", "ok"]
        assert it.results()[1].startswith("No matches found")
        assert place.secrets.allowed == frozenset()


async def test_a_search_that_names_a_secret_folder_is_asked_about_and_then_done(
    place: WorkspaceContext,
) -> None:
    model = ScriptedModel([call("grep", {"pattern": "KEY", "path": ".aws"}), say("ok")])
    async with bench(model, tools=TOOLS, workspace=place, clock=HeldClock()) as it:
        await it.session.prompt("go")
        it.session.permissions.answer((await asked(it)).request, "allowOnce")
        assert await ended(it) == ["ok"]
        assert it.results() == ["config:1: KEY=of .aws/config"]


@pytest.mark.parametrize("tool", ["ls", "find"])
async def test_a_yes_to_names_is_no_yes_to_what_is_in_the_files(
    place: WorkspaceContext, tool: str
) -> None:
    model = ScriptedModel([call(tool, {"path": ".aws", "pattern": "*"}), GREP, say("ok")])
    async with bench(model, tools=TOOLS, workspace=place, clock=HeldClock()) as it:
        await it.session.prompt("go")
        request = await asked(it)
        assert "searches" not in request.description
        it.session.permissions.answer(request.request, "allowOnce")
        assert await ended(it) == ["ok", "ok"]
        assert "KEY=" not in it.results()[1]
        assert place.secrets.allowed == frozenset()


@pytest.mark.parametrize("way", ["read", "open", "buffers"])
async def test_a_tool_that_does_not_say_what_it_reads_gets_no_secret_file(
    place: WorkspaceContext, way: str
) -> None:
    async def work(_arguments, context):
        path = await context.files.resolve(".env", "read")
        if way == "buffers":
            return text_result(repr(await context.files.buffers(path.parent)))
        if way == "read":
            return text_result(repr(await context.files.read(path)))
        async with context.files.open(path) as reader:
            return text_result(repr(await reader.read(99)))

    tool = FunctionTool("look", work, kind="read")
    model = ScriptedModel([call("look"), say("ok")])
    async with bench(model, tools=[tool], workspace=place) as it:
        await it.session.prompt("go")
        ends = await ended(it)
        assert "KEY=" not in it.results()[0]
        if way != "buffers":
            assert ends == ["error"]
            assert "Use the tool `read` on it, which asks" in it.results()[0]


async def test_another_session_is_asked_again(place: WorkspaceContext) -> None:
    model = ScriptedModel([call("read", {"path": ".env"}), say("ok")])
    async with bench(model, tools=TOOLS, workspace=place, clock=HeldClock()) as it:
        await it.session.prompt("go")
        it.session.permissions.answer((await asked(it)).request, "allowOnce")
        assert await ended(it) == ["ok"]
        assert "KEY=of .env" in it.results()[0]
    assert WorkspaceContext(workspace=place.workspace).secrets.allowed == frozenset()
