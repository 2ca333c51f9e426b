"""Tasks in worktrees over the wire: compared, merged into what the editor has, undone and removed."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lsp.test_lsp_results import check
from tests.support.clients.office import soon
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
TASK = {"description": "write it", "prompt": "CHILD: write", "isolation": "worktree"}


def worktree_of(ground: Ground, task: dict[str, Any]) -> Path:
    return ground.dirs.data / "worktrees" / task["worktree"]


@asynccontextmanager
async def with_task(ground: Ground, *edits: dict[str, Any]) -> AsyncGenerator[tuple[Any, Any]]:
    """Have a task make edits in a worktree; give the client and the task."""
    ground.provider.script(
        [
            {**calls(("task", TASK)), "when": "go"},
            {
                **calls(*(("edit" if "edits" in one else "write", one) for one in edits)),
                "when": "CHILD",
            },
            {**says("Written."), "when": "Success", "repeat": 1},
            {**says("Done."), "repeat": -1},
        ]
    )
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("go", wait=True))
        ended = (await stream.wait(type="task.ended"))["task"]
        assert ended["state"] == "completed"
        yield client, ended


def change(old: str, new: str, path: str = "note.txt") -> dict[str, Any]:
    return {"path": path, "edits": [{"oldText": old, "newText": new}]}


async def test_a_merge_goes_into_the_unsaved_text_of_the_editor_and_is_undone(
    ground: Ground,
) -> None:
    path = ground.file("note.txt", TEXT)
    ground.commit()
    edits = (change("one", "ONE"), {"path": "new.txt", "content": "new\n"})
    async with with_task(ground, *edits) as (client, task):
        assert path.read_text() == TEXT
        assert (worktree_of(ground, task) / "note.txt").read_text() == TEXT.replace("one", "ONE")
        client.open(path.as_uri(), TEXT.replace("seven", "unsaved"))
        listed = await client.request("agent/task/changes", {"id": "t1"})
        check("agent/task/changes", listed)
        files = {one["uri"]: one for one in listed["files"]}
        new = ground.root / "new.txt"
        assert sorted(files) == [new.as_uri(), path.as_uri()]
        (hunk,) = files[path.as_uri()]["hunks"]
        assert (hunk["oldText"], hunk["newText"], hunk["state"]) == ("one\n", "ONE\n", "pending")
        assert files[new.as_uri()]["op"] == "add"
        merged = await client.request("agent/task/merge", {"id": "t1"})
        check("agent/task/merge", merged)
        assert sorted(merged["written"]) == [new.as_uri(), path.as_uri()]
        document = client.editor.documents[path.as_uri()]
        assert document.text == TEXT.replace("one", "ONE").replace("seven", "unsaved")
        assert new.read_text() == "new\n"
        # The changes are those of the session now.
        changes = await client.request("agent/changes/list", {})
        assert sorted(one["uri"] for one in changes["files"]) == sorted(files)
        checkpoints = await client.request("agent/checkpoint/list", {})
        assert checkpoints["latestRun"] == merged["checkpoint"]
        restore = {"checkpoint": merged["checkpoint"], "scope": "files", "onConflict": "merge"}
        await client.request("agent/checkpoint/restore", restore)
        assert document.text == TEXT.replace("seven", "unsaved")
        assert not new.exists()


async def test_chosen_hunks_are_merged_and_the_rest_stays_in_the_worktree(ground: Ground) -> None:
    path = ground.file("note.txt", TEXT)
    ground.commit()
    async with with_task(ground, change("one", "ONE"), change("six", "SIX")) as (client, task):
        listed = await client.request("agent/task/changes", {"id": "t1"})
        _, second = listed["files"][0]["hunks"]
        await client.request("agent/task/merge", {"id": "t1", "hunks": [second["id"]]})
        assert path.read_text() == TEXT.replace("six", "SIX")
        with pytest.raises(
            ClientError, match="holds changes that were not merged; merge them, or discard"
        ):
            await client.request("agent/task/discard", {"id": "t1"})
        again = await client.request("agent/task/merge", {"id": "t1"})
        assert again["written"] == [path.as_uri()]
        assert path.read_text() == TEXT.replace("one", "ONE").replace("six", "SIX")
        assert (await client.request("agent/task/merge", {"id": "t1"}))["written"] == []
        removed = await client.request("agent/task/discard", {"id": "t1"})
        check("agent/task/discard", removed)
        assert not worktree_of(ground, task).exists()
        with pytest.raises(ClientError, match="task t1 has no worktree"):
            await client.request("agent/task/changes", {"id": "t1"})


async def test_links_stay_out_and_a_binary_and_an_executable_file_are_merged(
    ground: Ground,
) -> None:
    picture = ground.root / "picture.bin"
    picture.write_bytes(b"\0one")
    ground.commit()
    commands = "printf '\\0two' > picture.bin; printf 'echo hi\\n' > run.sh; chmod +x run.sh; ln -s run.sh link"
    ground.provider.script(
        [
            {**calls(("task", TASK)), "when": "go"},
            {**calls(("bash", {"command": commands})), "when": "CHILD"},
            {**says("Written."), "repeat": -1},
        ]
    )
    async with ground.client(PANEL) as client:
        await client.request("agent/prompt", prompt("go", wait=True))
        listed = await client.request("agent/task/changes", {"id": "t1"})
        files = {one["uri"].rpartition("/")[2]: one for one in listed["files"]}
        assert sorted(files) == ["link", "picture.bin", "run.sh"]
        assert files["picture.bin"]["binary"] is True
        with pytest.raises(ClientError, match=r"links are not merged into the workspace \(link\)"):
            await client.request("agent/task/merge", {"id": "t1"})
        chosen = [files[name]["uri"] for name in ("picture.bin", "run.sh")]
        merged = await client.request("agent/task/merge", {"id": "t1", "files": chosen})
        assert sorted(merged["written"]) == chosen
        assert picture.read_bytes() == b"\0two"
        assert (ground.root / "run.sh").stat().st_mode & 0o111
        restore = {"checkpoint": merged["checkpoint"], "scope": "files"}
        await client.request("agent/checkpoint/restore", restore)
        assert picture.read_bytes() == b"\0one"
        assert not (ground.root / "run.sh").exists()


async def test_nothing_is_merged_when_one_file_was_changed_in_another_way(ground: Ground) -> None:
    path = ground.file("note.txt", TEXT)
    other = ground.file("other.txt", TEXT)
    ground.commit()
    edits = (change("one", "ONE"), change("one", "ONE", "other.txt"))
    async with with_task(ground, *edits) as (client, _):
        other.write_text(TEXT.replace("one", "uno"))
        with pytest.raises(
            ClientError, match=r"nothing was merged: other\.txt changed in"
        ) as refused:
            await client.request("agent/task/merge", {"id": "t1"})
        assert refused.value.data["kind"] == "MergeConflicted"
        assert (path.read_text(), other.read_text()) == (TEXT, TEXT.replace("one", "uno"))
        part = {"id": "t1", "files": [path.as_uri()]}
        assert (await client.request("agent/task/merge", part))["written"] == [path.as_uri()]
        await client.request("agent/task/discard", {"id": "t1", "force": True})


async def test_a_worktree_without_changes_is_gone_and_a_task_outside_of_git_fails(
    ground: Ground,
) -> None:
    ground.file("note.txt", TEXT)
    ground.provider.script(
        [
            {**calls(("task", TASK)), "when": "go"},
            {**says("Looked."), "when": "CHILD"},
            {**says("Done."), "repeat": -1},
        ]
    )
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("go", wait=True))
        failed = (await stream.wait(type="task.ended"))["task"]
        assert failed["state"] == "failed"
        assert "no worktree can be made" in failed["error"]
        ground.commit()
    ground.provider.script(
        [
            {**calls(("task", TASK)), "when": "again"},
            {**says("Looked."), "when": "CHILD"},
            {**says("Done."), "repeat": -1},
        ]
    )
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("again", wait=True))
        ended = (await stream.wait(type="task.ended"))["task"]
        assert (ended["state"], ended.get("worktree")) == ("completed", None)
        assert not list((ground.dirs.data / "worktrees").glob("t*"))


async def test_a_removed_session_leaves_of_its_task_only_the_worktree(ground: Ground) -> None:
    ground.file("note.txt", TEXT)
    ground.commit()
    async with with_task(ground, change("one", "ONE")) as (client, task):
        (path,) = ground.sessions()
        session = path.stem.rpartition("_")[2]
        assert list(ground.dirs.data.glob(f"**/*{task['session']}*"))
        await client.request("agent/session/close", {"session": session})
        await client.request("agent/session/delete", {"session": session})
        left = [*ground.sessions(), *ground.dirs.data.glob(f"**/*{task['session']}*")]
        assert left == []
        assert (worktree_of(ground, task) / "note.txt").read_text() != TEXT


async def test_a_task_that_is_continued_stays_in_a_worktree_or_is_refused(ground: Ground) -> None:
    path = ground.file("note.txt", TEXT)
    ground.commit()
    edit = ("edit", change("one", "ONE"))
    ground.provider.script(
        [
            {**calls(("task", TASK)), "when": "go"},
            {"status": 400, "when": "CHILD"},
            {**says("It failed."), "when": "failed"},
            {**calls(edit), "when": "CHILD"},
            {"status": 400, "when": "Success"},
            {**says("Again."), "repeat": -1},
        ]
    )
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("go", wait=True))
        failed = (await stream.wait(type="task.ended"))["task"]
        # Nothing was changed, so its worktree is gone; it gets another one.
        assert (failed["state"], failed.get("worktree")) == ("failed", None)
        assert (await client.request("agent/task/resume", {"id": "t1"}))["worktree"]
        await soon(lambda: len(stream.of("task.ended")) == 2)
        left = stream.of("task.ended")[1]["task"]
        assert left["state"] == "failed"
        assert (worktree_of(ground, left) / "note.txt").read_text() == TEXT.replace("one", "ONE")
        await client.request("agent/task/discard", {"id": "t1", "force": True})
        await client.request("agent/task/resume", {"id": "t1"})
        await soon(lambda: len(stream.of("task.ended")) == 3)
        refused = stream.of("task.ended")[2]["task"]
        assert "was removed, so the task cannot be continued" in refused["error"]
        assert path.read_text() == TEXT
