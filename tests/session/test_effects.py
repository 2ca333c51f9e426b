"""What commands of tools do to files is written down, told, and taken back where that can be."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.changes.adapters.lookout import DiskLookout
from agent_core.changes.adapters.memory import MemoryContents
from agent_core.changes.effects import Effects, Lookout
from agent_core.events import ToolEnded
from agent_core.session.parts import Place
from agent_core.session.standing import Standing
from agent_core.tools.builtin import builtin_tools
from agent_core.workspace import Workspace
from agent_core.workspace.adapters.disk import DiskFiles
from agent_core.workspace.adapters.processes import DiskProcesses
from tests.support.scripted_model import ScriptedModel, call, say
from tests.support.sessions import Bench, bench

PATH = {"PATH": "/usr/bin:/bin"}
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


class _Broken:
    """A lookout that breaks its word never to fail."""

    async def prepare(self) -> None:
        raise RuntimeError("prepare")

    async def before(self) -> None:
        raise RuntimeError("before")

    async def after(self) -> Effects:
        raise RuntimeError("after")

    def close(self) -> None:
        """Hold nothing."""


@asynccontextmanager
async def shop(root: Path, lookout: Lookout | None = None) -> AsyncGenerator[Bench]:
    contents = MemoryContents()
    files = DiskFiles((root,), root)
    processes = DiskProcesses()
    place = Place(
        workspace=Workspace(roots=(root,), files=files, processes=processes, env=PATH),
        raw=files,
        lookout=lookout or DiskLookout((root,), contents, processes, env=PATH),
        standing=Standing(mode="yolo"),
    )
    tools = builtin_tools()
    async with bench(
        ScriptedModel([]), tools=tools, root=root, place=place, contents=contents
    ) as b:
        yield b


async def bash(b: Bench, command: str) -> ToolEnded:
    b.model.add(call("bash", {"command": command}), say("done"))
    _ = await b.session.prompt("go")
    ended = [one for one in await b.idle() if isinstance(one, ToolEnded)]
    return ended[-1]


def texts(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


async def test_what_a_command_did_is_told_and_can_be_taken_back(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").write_bytes(b"\x00\xff")
    before = await to_thread.run_sync(texts, tmp_path)
    async with shop(tmp_path) as b:
        ended = await bash(b, "echo one >a; rm b; mkdir d; echo new >d/c; true >empty")
        assert isinstance(ended.details, dict)
        names = [str(tmp_path / name) for name in ("a", "b", "d/c", "empty")]
        assert (ended.details["changed_files"], ended.details["changed_count"]) == (names, 4)
        log = b.session.checkpoints._parts.changes.log.all
        assert [(one.by, one.op, one.path.name) for one in log] == [
            ("process", "modify", "a"),
            ("process", "delete", "b"),
            ("process", "add", "c"),
            ("process", "add", "empty"),
        ]
        after = await to_thread.run_sync(texts, tmp_path)
        (made,) = b.session.checkpoints.all
        done = await b.session.checkpoints.restore(made.checkpoint)
        assert done.skipped == []
        assert await to_thread.run_sync(texts, tmp_path) == before
        _ = await b.session.checkpoints.restore(done.undo)
        assert await to_thread.run_sync(texts, tmp_path) == after


async def test_tools_that_only_look_are_not_looked_after(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("needle\n")
    async with shop(tmp_path) as b:
        b.model.add(call("grep", {"pattern": "needle"}), say("done"))
        _ = await b.session.prompt("go")
        _ = await b.idle()
        assert b.session.checkpoints.all == ()


async def test_a_command_that_changes_nothing_says_nothing(tmp_path: Path) -> None:
    async with shop(tmp_path) as b:
        ended = await bash(b, "echo hello")
        assert isinstance(ended.details, dict)
        assert not [key for key in ended.details if key.startswith("changed")]
        assert b.session.checkpoints.all == ()


async def test_what_a_cancelled_command_did_is_written_down(tmp_path: Path) -> None:
    async with shop(tmp_path) as b:
        b.model.add(call("bash", {"command": "echo 1 >a; echo started; sleep 60"}), say("done"))
        _ = await b.session.prompt("go")
        while not await to_thread.run_sync((tmp_path / "a").exists):
            await to_thread.run_sync(lambda: None)
        _ = await b.session.abort()
        _ = await b.idle()
        (change,) = b.session.checkpoints._parts.changes.log.all
        assert (change.by, change.op, change.path) == ("process", "add", tmp_path / "a")


async def test_a_lookout_that_breaks_fails_no_command_and_says_that_it_saw_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with shop(tmp_path, _Broken()) as b:
        first, second = await bash(b, "echo hi > a"), await bash(b, "cat a")
    assert [one.status for one in (first, second)] == ["ok", "ok"]
    assert "not seen" in str(first.details)
    assert "hi" in str(second.content)
    assert "could not be looked at" in caplog.text
