"""What commands of tools do to files is written down, told, and taken back where that can be."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from agent_core.changes.adapters.disk_detector import DiskChangeDetector
from agent_core.changes.ports import ChangeDetector, DetectedChanges
from agent_core.events import Notice, RunEnded, ToolEnded
from agent_core.kernel.errors import CheckpointConflict
from agent_core.messages import Text
from agent_core.session.changes.detection import NOT_SEEN
from agent_core.session.context import WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools.builtin import builtin_tools
from agent_core.workspace import Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.processes.disk_processes import DiskProcesses
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench

PATH = {"PATH": "/usr/bin:/bin"}
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")


class _Broken:
    """A lookout that breaks its word never to fail."""

    async def prepare(self) -> None:
        raise RuntimeError("prepare")

    async def snapshot(self) -> None:
        raise RuntimeError("before")

    async def diff(self) -> DetectedChanges:
        raise RuntimeError("after")

    def close(self) -> None:
        """Hold nothing."""


@asynccontextmanager
async def shop(root: Path, lookout: ChangeDetector | None = None) -> AsyncGenerator[Bench]:
    contents = MemoryBlobStore()
    files = DiskFiles((root,), root)
    processes = DiskProcesses()
    place = WorkspaceContext(
        workspace=Workspace(roots=(root,), files=files, processes=processes, env=PATH),
        raw=files,
        detector=lookout or DiskChangeDetector((root,), contents, processes, env=PATH),
        permissions=PermissionState(mode="yolo"),
    )
    tools = builtin_tools()
    async with bench(
        ScriptedModel([]), tools=tools, root=root, workspace=place, contents=contents
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
        log = b.session.changes.log.all
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
        (change,) = b.session.changes.log.all
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


IGNORING = "git init -q .; printf '*.log\\n/out/\\n' >.gitignore; mkdir out; echo 1 >out/a; echo 1 >a.log; echo 1 >c"
WHY = "a command deleted it, and no copy is kept of what git ignores"


async def ready(root: Path, script: str) -> None:
    _ = await anyio.run_process(["bash", "-ec", script], cwd=root, env=PATH)


def notices(b: Bench) -> list[str]:
    return [one.text for one in b.seen() if isinstance(one, Notice)]


async def test_ignored_files_that_a_command_deleted_are_named_at_the_end_of_the_run_and_by_undo(
    tmp_path: Path,
) -> None:
    await ready(tmp_path, IGNORING)
    async with shop(tmp_path) as b:
        _ = await bash(b, "rm -rf out a.log; echo 2 >c")
        told = f"Undo cannot bring back a.log, out ({WHY})."
        assert notices(b) == [told]
        assert b.session.changes.lost() == told
        kinds = [type(one) for one in b.seen() if isinstance(one, Notice | RunEnded)]
        assert kinds == [Notice, RunEnded]
        # Nothing of them waits for review.
        assert (b.session.changes.counts.files, len((await b.session.changes.list()).files)) == (
            1,
            1,
        )
        (made,) = b.session.checkpoints.all
        done = await b.session.checkpoints.restore(made.checkpoint)
        assert done.restored == [tmp_path / "c"]
        assert {one.path.name: one.why for one in done.skipped} == {
            name: f"{name} cannot be taken back: {WHY}" for name in ("a.log", "out")
        }


async def test_a_run_that_deleted_only_what_git_ignores_can_be_asked_back_and_says_why_not(
    tmp_path: Path,
) -> None:
    await ready(tmp_path, IGNORING)
    async with shop(tmp_path) as b:
        _ = await bash(b, "rm -rf out")
        await ready(tmp_path, "mkdir out")
        latest = b.session.checkpoints.latest_run
        assert latest is not None
        with pytest.raises(CheckpointConflict, match=f"out cannot be taken back: {WHY}"):
            _ = await b.session.checkpoints.restore(latest.checkpoint)
        assert b.session.checkpoints.latest_run is None


async def test_what_was_ignored_and_got_another_name_is_moved_back_and_not_deleted(
    tmp_path: Path,
) -> None:
    await ready(tmp_path, IGNORING)
    before = await to_thread.run_sync(texts, tmp_path)
    async with shop(tmp_path) as b:
        _ = await bash(b, "mv out/a found")
        assert notices(b) == []
        (made,) = b.session.checkpoints.all
        done = await b.session.checkpoints.restore(made.checkpoint)
        assert done.skipped == []
    assert await to_thread.run_sync(texts, tmp_path) == before


async def test_what_may_hold_the_bytes_of_a_deleted_ignored_file_stays(tmp_path: Path) -> None:
    await ready(tmp_path, IGNORING)
    async with shop(tmp_path) as b:
        _ = await bash(b, "cat out/a >found; rm out/a")
        (made,) = b.session.checkpoints.all
        with pytest.raises(CheckpointConflict, match="found was made by a command"):
            _ = await b.session.checkpoints.restore(made.checkpoint)
    assert (tmp_path / "found").read_text() == "1\n"


async def test_a_large_file_that_a_command_deleted_is_named_with_the_reason(tmp_path: Path) -> None:
    await ready(tmp_path, "head -c 10485761 /dev/zero >big; head -c 10 /dev/zero >small")
    async with shop(tmp_path) as b:
        _ = await bash(b, "rm big small")
        told = "Undo cannot bring back big (no copy is kept of files of more than 10 MiB)."
        assert notices(b) == [told]


async def test_a_branch_that_a_command_deleted_is_named_with_its_commit(tmp_path: Path) -> None:
    own = "git -c user.name=a -c user.email=a@b.c"
    await ready(tmp_path, f"git init -q .; {own} commit -q --allow-empty -m one; git branch keep")
    async with shop(tmp_path) as b:
        ended = await bash(b, "git rev-parse keep; git branch -q -D keep")
        (commit,) = [part.text for part in ended.content if isinstance(part, Text)]
        (told,) = notices(b)
        why = (
            f"a command removed it, and undo changes nothing in repositories; it was {commit[:12]}"
        )
        assert told == f"Undo cannot bring back .git/refs/heads/keep ({why})."


async def test_what_could_not_be_seen_is_said_once_to_the_user_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with shop(tmp_path, _Broken()) as b:
        _ = await bash(b, "echo hi > a")
        _ = await bash(b, "echo hi > b")
        assert notices(b) == [f"{NOT_SEEN} Undo does not bring that back."]
    assert "could not be looked at" in caplog.text


async def test_undo_goes_back_run_by_run_and_a_restore_of_a_restore_brings_them_back(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path) as b:
        checkpoints = b.session.checkpoints
        for name in ("a", "b", "c"):
            _ = await bash(b, f"echo {name} >{name}")
        undos: list[str] = []
        left: list[list[str]] = []
        while (latest := checkpoints.latest_run) is not None:
            undos.append((await checkpoints.restore(latest.checkpoint)).undo)
            left.append(sorted(await to_thread.run_sync(texts, tmp_path)))
        assert left == [["a", "b"], ["a"], []]
        _ = await checkpoints.restore(undos[1])
        assert sorted(await to_thread.run_sync(texts, tmp_path)) == ["a", "b"]
        _ = await bash(b, "echo d >d")
        for there in (["a", "b"], ["a"], []):
            latest = checkpoints.latest_run
            assert latest is not None
            _ = await checkpoints.restore(latest.checkpoint)
            assert sorted(await to_thread.run_sync(texts, tmp_path)) == there
        assert checkpoints.latest_run is None


async def test_some_files_or_the_conversation_taken_back_leave_the_run_to_undo(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path) as b:
        checkpoints = b.session.checkpoints
        _ = await bash(b, "echo a >a; echo b >b")
        latest = checkpoints.latest_run
        assert latest is not None
        _ = await checkpoints.restore(latest.checkpoint, files=[tmp_path / "a"])
        _ = await checkpoints.restore(latest.checkpoint, scope="conversation")
        assert checkpoints.latest_run == latest
        done = await checkpoints.restore(latest.checkpoint)
        assert done.restored == [tmp_path / "b"]


async def test_the_lines_of_a_run_are_counted_against_what_that_run_found(tmp_path: Path) -> None:
    async with shop(tmp_path) as b:
        _ = await bash(b, "printf '1\\n2\\n' >two; printf 'a\\nb\\n' >kept")
        _ = await bash(b, "rm two; echo 1 >one; printf 'a\\nB\\nc\\n' >kept")
        ended = [one.changes for one in b.seen() if isinstance(one, RunEnded)]
        assert [(one.files, one.additions, one.deletions) for one in ended] == [
            (2, 4, 0),
            (3, 3, 3),
        ]
        # What waits for review is counted against what the session found.
        counts = b.session.changes.counts
        assert (counts.files, counts.additions, counts.deletions) == (2, 4, 0)
