"""Sessions and the windows before them: which one a window gets, who is attached, what outlives whom."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.assembly import SessionRequest, open_session
from agent_core.session import AgentSession
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.clients.windows import opened, serving
from tests.support.harness.clock import HeldClock
from tests.support.lsp.lsp_answers import LeavesOpen
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import HELIX, VSCODE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


async def until(condition: Any) -> None:
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110 - what a client has received sets no event
            await anyio.sleep(0.01)


async def test_a_window_that_reloads_gets_its_own_session_again(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two")])
    async with serving(ground) as windows:
        async with (
            windows.window(clientId="left") as left,
            windows.window(clientId="right") as right,
        ):
            mine = (await opened(left))["session"]
            await left.request("agent/prompt", prompt("hello", wait=True))
            other = (await opened(right, "new"))["session"]
            await right.request("agent/prompt", prompt("hello", wait=True))
            assert mine != other
        async with (
            windows.window(clientId="left") as left,
            windows.window(clientId="right") as right,
        ):
            assert (await opened(left))["session"] == mine
            assert (await opened(right))["session"] == other
    kept = ground.dirs.data / "windows.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    async with (
        serving(ground) as windows,
        windows.window(clientId="left") as left,
        windows.window(clientId="new one") as new,
    ):
        assert (await opened(left))["session"] == mine
        assert (await opened(new))["session"] == other


@pytest.mark.parametrize("content", ["", "{", "[[1]]", '[["left"]]', '[["left", "/x", "gone"]]'])
async def test_a_damaged_memory_of_windows_costs_nothing_else(ground: Ground, content: str) -> None:
    ground.dirs.data.mkdir(parents=True, exist_ok=True)
    (ground.dirs.data / "windows.json").write_text(content, "utf-8")
    async with serving(ground) as windows, windows.window(clientId="left") as left:
        assert (await opened(left))["state"] == "idle"


async def test_a_session_of_a_window_that_is_gone_gives_way_to_another(ground: Ground) -> None:
    kept = [["left", str(ground.root), "0199aaaa-0000-7000-8000-000000000000"]]
    ground.dirs.data.mkdir(parents=True, exist_ok=True)
    (ground.dirs.data / "windows.json").write_text(json.dumps(kept), "utf-8")
    async with serving(ground) as windows, windows.window(clientId="left") as left:
        assert (await opened(left))["session"] != kept[0][2]
        with pytest.raises(ClientError) as refused:
            await opened(left, kept[0][2])
        assert refused.value.data["kind"] == "SessionNotFound"


async def test_a_window_that_wants_none_has_none_until_it_opens_one(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window(session={"open": "none"}) as window:
        with pytest.raises(ClientError, match="agent/session/open") as refused:
            await window.request("agent/prompt", prompt("hello"))
        assert refused.value.data["kind"] == "SessionNotFound"
        assert await windows.sessions() == {}
        assert (await opened(window))["state"] == "idle"
        await window.request("agent/session/stats", {})


async def test_two_windows_on_one_folder_share_its_session_and_know_of_one_another(
    ground: Ground, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(ground.root)
    async with serving(ground) as windows, windows.window() as first:
        snapshot = await opened(first)
        assert snapshot["clients"] == [{"role": "editor", "name": "panel"}]
        stream = first.subscribe()
        await stream.ready()
        builds = {"name": "builds", "role": "ci"}
        async with windows.window(HELIX, root=link, client=builds) as second:
            assert (await opened(second))["session"] == snapshot["session"]
            told = await stream.wait(type="session.clients")
            assert told["clients"] == [
                {"role": "editor", "name": "panel"},
                {"role": "ci", "name": "builds"},
            ]
        gone = await stream.wait(type="session.clients", after=told["seq"])
        assert gone["clients"] == [{"role": "editor", "name": "panel"}]


async def test_a_run_goes_on_without_its_window_and_a_question_waits_for_the_next(
    ground: Ground,
) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("done")])
    async with serving(ground) as windows:
        async with windows.window(clientId="w") as window:
            window.handlers["agent/permission"] = LeavesOpen()
            stream = window.subscribe()
            await stream.ready()
            await window.request("agent/prompt", prompt("go"))
            await stream.wait(type="permission.requested")
        (hosted,) = (await windows.sessions()).values()
        assert hosted.session.info.snapshot().state == "requiresAction"
        async with windows.window(clientId="w") as window:
            window.handlers["agent/permission"] = lambda _, reply: reply({"option": "allowOnce"})
            snapshot = await opened(window)
            assert snapshot["session"] == hosted.session.id
            run = hosted.session.info.snapshot().run.run
            await hosted.session.wait(run)
            assert (ground.root / "made").exists()


async def test_what_lives_for_its_connection_ends_with_it(ground: Ground) -> None:
    async with serving(ground) as windows:
        async with windows.window(session={"lifetime": "connection"}) as window:
            await opened(window)
            (hosted,) = (await windows.sessions()).values()
        with anyio.fail_after(10):
            await hosted.closed.wait()
        assert await windows.sessions() == {}


async def test_a_session_nobody_uses_leaves_the_memory_and_comes_back_the_same(
    ground: Ground,
) -> None:
    ground.configure(idleUnloadMinutes=10)
    ground.provider.script([says("one")])
    clock = HeldClock()
    async with serving(ground, clock=clock) as windows:
        async with windows.window(clientId="w") as window:
            session = (await opened(window))["session"]
            await window.request("agent/prompt", prompt("hello", wait=True))
            for _ in range(40):
                clock.advance(30)
                await anyio.lowlevel.checkpoint()
            assert list(await windows.sessions()) == [session]
        (hosted,) = (await windows.sessions()).values()
        epoch, seq = hosted.epoch, hosted.session.info.events.seq
        with anyio.fail_after(20):
            while not hosted.closed.is_set():
                clock.advance(30)
                await anyio.sleep(0.01)
        assert await windows.sessions() == {}
        async with windows.window(clientId="w") as window:
            again = await opened(window)
            assert (again["session"], again["epoch"]) == (session, epoch)
            assert again["seq"] >= seq


class Breaking:
    """Opens sessions of which one can be made to break."""

    def __init__(self) -> None:
        self.breaks = anyio.Event()
        self.broken: str | None = None

    @asynccontextmanager
    async def open(self, request: SessionRequest) -> AsyncGenerator[AgentSession]:
        async with open_session(request) as session, anyio.create_task_group() as group:
            group.start_soon(self._break, session.id)
            yield session
            group.cancel_scope.cancel()

    async def _break(self, session: str) -> None:
        await self.breaks.wait()
        if session == self.broken:
            message = "a bug"
            raise LookupError(message)


async def test_a_session_that_breaks_hurts_no_other_and_is_opened_again(
    ground: Ground, tmp_path: Path
) -> None:
    other_root = tmp_path / "other"
    other_root.mkdir()
    ground.provider.script([says("one"), says("two"), says("three")])
    breaking = Breaking()
    async with (
        serving(ground, opener=breaking.open) as windows,
        windows.window() as window,
        windows.window(root=other_root) as other,
    ):
        session = (await opened(window))["session"]
        await window.request("agent/prompt", prompt("hello", wait=True))
        stream = window.subscribe()
        await stream.ready()
        untouched = (await opened(other))["session"]
        breaking.broken = session
        breaking.breaks.set()
        assert (await stream.call.result())["reason"] == "closed"
        shown = (await window.wait_method("window/showMessage"))["params"]
        assert shown["type"] == 1
        assert "broken off" in shown["message"]
        breaking.broken = None
        assert list(await windows.sessions()) == [untouched]
        result = await other.request("agent/prompt", prompt("hello", wait=True))
        assert result["status"] == "completed"
        again = await window.request("agent/prompt", prompt("and now?", wait=True))
        assert again["status"] == "completed"
        assert (await opened(window))["session"] == session


async def test_a_client_that_sees_the_files_under_other_names_is_spoken_to_in_its_own(
    ground: Ground,
) -> None:
    path = ground.file("a.txt", "old\n")
    edit = {"path": str(path), "edits": [{"oldText": "old", "newText": "new"}]}
    ground.provider.script(
        [calls(("read", {"path": "a.txt"})), calls(("edit", edit)), says("done")]
    )
    uri_map = [{"client": "file:///client/", "server": f"{ground.root.parent.as_uri()}/"}]
    client_root = Path("/client/project")
    async with (
        serving(ground) as windows,
        windows.window(VSCODE, root=client_root, uriMap=uri_map) as window,
    ):
        snapshot = await opened(window)
        assert [root["uri"] for root in snapshot["roots"]] == [client_root.as_uri()]
        document = window.open((client_root / "a.txt").as_uri(), "old\n")
        result = await window.request("agent/prompt", prompt("edit it", wait=True))
        assert document.text == "new\n"
        assert [file["uri"] for file in result["changes"]["files"]] == [document.uri]
        status = await window.request("agent/status", {})
        (told,) = status["sessions"]
        assert (told["workspace"], told["clients"]) == (client_root.as_uri(), 1)
        assert status["daemon"]["durable"] is False


async def test_a_file_with_unsaved_text_in_two_windows_is_left_alone_and_both_are_told(
    ground: Ground,
) -> None:
    path = ground.file("a.txt", "old\n")
    edit = {"path": str(path), "edits": [{"oldText": "typed", "newText": "new"}]}
    ground.provider.script(
        [calls(("read", {"path": "a.txt"})), calls(("edit", edit)), says("sorry")]
    )
    async with (
        serving(ground) as windows,
        windows.window(VSCODE) as one,
        windows.window(HELIX) as other,
    ):
        for window in (one, other):
            await opened(window)
            _ = window.open(path.as_uri(), "old\n")
            _ = window.change(path.as_uri(), "typed\n")
        stream = one.subscribe()
        await stream.ready()
        await one.request("agent/prompt", prompt("edit it", wait=True))
        ended = await stream.wait(type="tool.ended", name="edit")
        assert ended["status"] == "error"
        assert "DocumentContention" in str(ended["content"])
        notice = await stream.wait(type="notice")
        assert "at once" in notice["text"]
        shown = await other.wait_method("window/showMessage")
        assert "at once" in shown["params"]["message"]
    assert path.read_text("utf-8") == "old\n"


async def test_a_second_subscription_of_a_window_begins_where_the_first_one_is(
    ground: Ground,
) -> None:
    ground.provider.script([{"deltas": 100, "delta_delay_s": 0.003}])
    async with serving(ground) as windows, windows.window(clientId="one") as client:
        await opened(client)
        first = client.subscribe()
        await first.ready()
        await client.request("agent/prompt", prompt("go"))
        await first.wait(type="message.delta")
        others = [client.subscribe() for _ in range(3)]
        for one in (first, *others):
            await one.ready()
            await one.wait(type="run.ended")
        # The frame of the first that ends there may be written after the answer to the other.
        ends = {one.get("to") for one in first.frames}
        assert {other.frames[0]["seq"] for other in others} <= ends
