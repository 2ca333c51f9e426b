"""Rules of the section "Front ends" of ARCHITECTURE.md, checked on each front end."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.channels.front_ends import FRONT_ENDS, FrontEnd
from tests.support.clients.server import Ground, calls, says
from tests.support.clients.windows import opened, serving
from tests.support.lsp.lsp_answers import LeavesOpen
from tests.support.lsp.lsp_subscription import Subscription
from tests.support.mcp.mcp_servers import PNG

pytestmark = [pytest.mark.timeout(60)]

TOUCH = calls(("bash", {"command": "touch x"}))
NAMES = {
    "lsp": "panel",
    "acp": "scripted",
    "rpc": "rpc",
    "web": "Tiller web",
    "terminal": "terminal",
}
"""The names that stand in the events for the answers of each."""


@pytest.fixture(params=list(FRONT_ENDS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


class Watcher:
    """An editor before the same session, which sees the events and may answer first."""

    def __init__(self, stream: Subscription, dialog: LeavesOpen) -> None:
        self.stream = stream
        self.dialog = dialog

    async def resolved(self) -> dict[str, Any]:
        return await self.stream.wait(type="permission.resolved")

    async def ended(self) -> dict[str, Any]:
        return await self.stream.wait(type="run.ended")


@asynccontextmanager
async def before(
    ground: Ground, kind: str, *, timeout_s: float = 20
) -> AsyncGenerator[tuple[FrontEnd, Watcher]]:
    """Open a session in an editor and in a front end."""
    ground.configure(
        permission={"mode": "ask", "timeoutS": timeout_s}, sandbox="off", retry={"enabled": False}
    )
    async with serving(ground) as windows, windows.window(clientId="watcher") as editor:
        dialog = editor.handlers["agent/permission"] = LeavesOpen()
        session = (await opened(editor))["session"]
        stream = editor.subscribe()
        await stream.ready()
        async with FRONT_ENDS[kind](windows, session) as front:
            yield front, Watcher(stream, dialog)


async def test_an_answer_is_shown_once_and_whole(ground: Ground, kind: str) -> None:
    ground.provider.script([says("It is done.")])
    async with before(ground, kind) as (front, watcher):
        await front.prompt("go")
        assert await front.ended() == ""
        await front.said("It is done.")
        assert (await watcher.ended())["status"] == "completed"


async def test_a_permission_is_asked_for_and_the_answer_has_the_name_of_the_front_end(
    ground: Ground, kind: str
) -> None:
    ground.provider.script([TOUCH, says("done")])
    async with before(ground, kind) as (front, watcher):
        await front.prompt("go")
        await front.asked()
        assert not (ground.root / "x").exists()
        await front.allow()
        assert await front.ended() == ""
        assert (await watcher.resolved())["by"] == NAMES[kind]
    assert (ground.root / "x").exists()


async def test_a_permission_that_is_answered_elsewhere_is_withdrawn(
    ground: Ground, kind: str
) -> None:
    ground.provider.script([TOUCH, says("done")])
    async with before(ground, kind) as (front, watcher):
        await front.prompt("go")
        await front.asked()
        watcher.dialog.replies[0]({"option": "rejectOnce"})
        await front.withdrawn()
        assert await front.ended() == ""
        resolved = await watcher.resolved()
        assert (resolved["by"], resolved["option"]) == ("panel", "rejectOnce")
    assert not (ground.root / "x").exists()


async def test_a_user_who_is_away_allows_nothing(ground: Ground, kind: str) -> None:
    ground.provider.script([TOUCH, says("I was not allowed to.")])
    async with before(ground, kind, timeout_s=1) as (front, watcher):
        await front.prompt("go")
        await front.asked()
        assert await front.ended() == ""
        assert (await watcher.resolved())["by"] == "timeout"
        await front.said("I was not allowed to.")
    assert not (ground.root / "x").exists()


async def test_a_run_is_stopped(ground: Ground, kind: str) -> None:
    ground.provider.script([{**says("never"), "stall_forever_after_deltas": 0}])
    async with before(ground, kind) as (front, watcher):
        await front.prompt("go")
        await watcher.stream.wait(type="turn.started")
        await front.cancel()
        assert (await watcher.ended())["status"] == "cancelled"
        _ = await front.ended()


async def test_the_reason_of_a_failure_is_shown(ground: Ground, kind: str) -> None:
    ground.provider.script([{"status": 400, "body": {"error": {"message": "no such thing"}}}])
    async with before(ground, kind) as (front, watcher):
        await front.prompt("go")
        assert "no such thing" in await front.ended()
        ended = await watcher.ended()
        assert (ended["status"], ended["stage"]) == ("failed", "execute")


async def test_a_picture_that_a_tool_returns_is_delivered(ground: Ground, kind: str) -> None:
    (ground.root / "one.png").write_bytes(PNG)
    ground.provider.script([calls(("read", {"path": "one.png"})), says("seen")])
    async with before(ground, kind) as (front, _):
        await front.prompt("go")
        assert await front.ended() == ""
        assert await front.pictures() == 1


async def test_a_run_outlives_the_front_end_that_began_it(ground: Ground, kind: str) -> None:
    ground.provider.script([TOUCH, says("done")])
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    async with serving(ground) as windows, windows.window(clientId="watcher") as editor:
        dialog = editor.handlers["agent/permission"] = LeavesOpen()
        session = (await opened(editor))["session"]
        stream = editor.subscribe()
        await stream.ready()
        async with FRONT_ENDS[kind](windows, session) as front:
            await front.prompt("go")
            await front.asked()
        dialog.replies[0]({"option": "allowOnce"})
        assert (await stream.wait(type="run.ended"))["status"] == "completed"
    assert (ground.root / "x").exists()
