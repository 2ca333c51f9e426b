"""Workspaces with several folders: they come and go, are trusted each for itself, and bound what tools may do."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tests.support.clients.windows import opened, serving
from tests.support.lsp.lsp_client import RawClient

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


def changed(
    client: RawClient, *, added: tuple[Path, ...] = (), removed: tuple[Path, ...] = ()
) -> None:
    event = {
        name: [{"uri": one.as_uri(), "name": one.name} for one in some]
        for name, some in (("added", added), ("removed", removed))
    }
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})


def writes(path: Path, text: str = "new\n") -> Any:
    return calls(("write", {"path": str(path), "content": text}))


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Return another project beside the workspace."""
    root = tmp_path / "second"
    root.mkdir()
    (root / "AGENTS.md").write_text("Speak of the second project.\n", "utf-8")
    (root / "there.txt").write_text("what is there\n", "utf-8")
    return root.resolve()


async def test_an_added_folder_is_worked_in_from_the_next_call_on_and_no_more_once_removed(
    ground: Ground, second: Path
) -> None:
    ground.provider.script(
        [
            writes(second / "early.txt"),
            says("refused"),
            writes(second / "made.txt"),
            says("done"),
            writes(second / "late.txt"),
            says("refused again"),
        ]
    )
    async with serving(ground) as windows, windows.window() as window:
        snapshot = await opened(window)
        assert [root["uri"] for root in snapshot["roots"]] == [ground.root.as_uri()]
        stream = window.subscribe()
        await stream.ready()
        await window.request("agent/prompt", prompt("write", wait=True))
        changed(window, added=(second,))
        told = await stream.wait(type="session.roots")
        assert told["roots"] == [
            {"uri": ground.root.as_uri(), "name": "project", "primary": True, "trusted": True},
            {"uri": second.as_uri(), "name": "second", "primary": False, "trusted": True},
        ]
        await window.request("agent/prompt", prompt("write", wait=True))
        changed(window, removed=(second,))
        await stream.wait(type="session.roots", after=told["seq"])
        await window.request("agent/prompt", prompt("write", wait=True))
        ended = stream.of("tool.ended")
    assert [one["status"] for one in ended] == ["blocked", "ok", "blocked"]
    assert (second / "made.txt").exists()
    assert not (second / "early.txt").exists()
    assert not (second / "late.txt").exists()
    systems = [one["body"]["messages"][0]["content"] for one in ground.provider.requests]
    heard = ["Speak of the second project." in one for one in systems]
    assert heard == [False, False, True, True, False, False]
    assert str(second) in systems[2]


async def test_an_added_folder_that_is_not_trusted_can_be_read_and_nothing_else(
    ground: Ground, second: Path
) -> None:
    ground.configure(defaultProjectTrust="ask", permission={"mode": "yolo", "fallback": "deny"})
    there = second / "there.txt"
    ground.provider.script(
        [
            calls(("read", {"path": str(there)})),
            writes(second / "made.txt"),
            says("read only"),
            writes(second / "made.txt"),
            says("done"),
        ]
    )
    async with serving(ground) as windows, windows.window(folders=(second,)) as window:
        snapshot = await opened(window)
        assert [root["trusted"] for root in snapshot["roots"]] == [False, False]
        stream = window.subscribe()
        await stream.ready()
        window.notify("agent/trust", {"items": [{"folder": ground.root.as_uri(), "trusted": True}]})
        await stream.wait(type="session.trust")
        await window.request("agent/prompt", prompt("go", wait=True))
        read, refused = tool_texts(ground.provider.requests[2])
        assert "what is there" in read
        assert str(second) in refused
        assert "Speak of the second" not in str(ground.provider.requests[2])
        window.notify("agent/trust", {"items": [{"folder": second.as_uri(), "trusted": True}]})
        told = await stream.wait(type="session.roots")
        assert [root["trusted"] for root in told["roots"]] == [True, True]
        await window.request("agent/prompt", prompt("again", wait=True))
    assert (second / "made.txt").read_text("utf-8") == "new\n"
    assert "Speak of the second" in str(ground.provider.requests[3])


async def test_the_folders_of_all_windows_count_and_those_of_one_that_left_do_not(
    ground: Ground, second: Path, tmp_path: Path
) -> None:
    third = tmp_path / "third"
    third.mkdir()
    async with serving(ground) as windows, windows.window(folders=(second,)) as first:
        await opened(first)
        stream = first.subscribe()
        await stream.ready()
        async with windows.window(folders=(third, tmp_path / "gone")) as other:
            snapshot = await opened(other)
            assert [root["name"] for root in snapshot["roots"]] == ["project", "second", "third"]
            both = await stream.wait(type="session.roots")
        left = await stream.wait(type="session.roots", after=both["seq"])
        assert [root["name"] for root in left["roots"]] == ["project", "second"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"event": None},
        {"event": {"added": 1, "removed": "x"}},
        {
            "event": {
                "added": [None, {}, {"uri": 7}, {"uri": "untitled:x"}, {"uri": "file:///nowhere"}]
            }
        },
    ],
    ids=["nothing", "null", "no lists", "no folders"],
)
async def test_folders_that_make_no_sense_are_left_out(ground: Ground, params: Any) -> None:
    async with serving(ground) as windows, windows.window() as window:
        await opened(window)
        window.notify("workspace/didChangeWorkspaceFolders", params)
        snapshot = await opened(window)
        assert [root["uri"] for root in snapshot["roots"]] == [ground.root.as_uri()]
