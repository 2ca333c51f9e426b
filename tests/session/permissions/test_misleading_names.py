"""A name that looks like another is written as asked for, and people and model are told."""

from pathlib import Path

import pytest

from agent_core.events import Notice
from agent_core.kernel import JsonObject
from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools.builtin import edit_tool, write_tool
from agent_core.workspace import Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from tests.support.session.asking import ended
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import bench
from tests.support.workspace.searches import NoPrograms

CYRILLIC = "src/\u0430.py"


def _write(path: str) -> JsonObject:
    return {"path": path, "content": "x = 2\n"}


@pytest.fixture
def place(tmp_path: Path) -> WorkspaceContext:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = 1\n", encoding="utf-8")
    workspace = Workspace(
        roots=(tmp_path,), files=DiskFiles((tmp_path,), tmp_path), processes=NoPrograms(), env={}
    )
    return WorkspaceContext(workspace=workspace, permissions=PermissionState(mode="ask"))


@pytest.mark.parametrize("name", [CYRILLIC, "src/a.py ", "src/new.py. ", "sr\u0441/b.py"])
async def test_people_and_model_are_told_of_a_misleading_name(
    place: WorkspaceContext, name: str
) -> None:
    edit = {"path": name, "edits": [{"oldText": "x = 2", "newText": "x = 3"}]}
    model = ScriptedModel([call("write", _write(name)), call("edit", edit), say("ok")])
    async with bench(model, tools=(write_tool(), edit_tool()), workspace=place) as it:
        await it.session.prompt("go")
        assert await ended(it) == ["ok", "ok"]
        (notice,) = [one for one in it.seen() if isinstance(one, Notice)]
        assert notice.level == "warning"
        assert "Check that it is the file you mean" in notice.text
        assert all("\nWarning: " in text for text in it.results())
    assert any(
        path.read_text(encoding="utf-8") == "x = 3\n"
        for path in place.workspace.root.rglob("*.py*")
    )


async def test_nobody_is_told_of_an_ordinary_name(place: WorkspaceContext) -> None:
    model = ScriptedModel([call("write", _write("src/b.py")), say("ok")])
    async with bench(model, tools=(write_tool(),), workspace=place) as it:
        await it.session.prompt("go")
        assert await ended(it) == ["ok"]
        assert not [one for one in it.seen() if isinstance(one, Notice)]
        assert "Warning" not in it.results()[0]
