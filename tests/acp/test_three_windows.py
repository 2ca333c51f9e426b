"""One session before clients of three kinds: an editor over LSP, a client of ACP, and a chat of the terminal."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_core.events import Event, PermissionRequested, PermissionResolved, RunEnded
from agent_core.resources.paths import app_paths
from tests.support.acp.client import opener, served
from tests.support.clients.office import soon
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.clients.windows import Windows, opened, serving
from tests.support.lsp.lsp_answers import LeavesOpen
from tiller_server.agent_client.in_process import attached
from tiller_server.agent_client.session import SharedSession
from tiller_server.lsp.app import App

Json = dict[str, Any]


class Chat:
    """A conversation of the terminal, with the events that it has seen."""

    def __init__(self, session: SharedSession) -> None:
        self.session = session
        self.events: list[Event] = []

    async def read(self) -> None:
        async for one in self.session.subscribe():
            self.events.append(one.event)

    def seen(self, kind: type[Event]) -> list[Any]:
        return [one for one in self.events if isinstance(one, kind)]


@asynccontextmanager
async def chat(windows: Windows, ground: Ground, session: str) -> AsyncGenerator[Chat]:
    async with attached(App(windows.runtime)) as connection:
        shared = SharedSession(connection, app_paths(ground.env), name="terminal")
        await shared.open(session, ground.root)
        one = Chat(shared)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(one.read())
            following = tasks.create_task(shared.follow())
            yield one
            for task in (reading, following):
                _ = task.cancel()


def option_of(asked: Json) -> str:
    return next(one["optionId"] for one in asked["options"] if one["kind"] == "allow_once")


@pytest.mark.parametrize("answered_by", ["editor", "acp", "chat"])
async def test_all_see_the_same_and_a_permission_is_withdrawn_where_it_was_not_answered(
    ground: Ground, answered_by: str
) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    ground.provider.script([calls(("bash", {"command": "touch x"})), says("done")])
    async with serving(ground) as windows, windows.window(clientId="w") as editor:
        dialog = editor.handlers["agent/permission"] = LeavesOpen()
        session = (await opened(editor))["session"]
        stream = editor.subscribe()
        await stream.ready()
        async with (
            served(opener(windows.runtime), env=ground.env) as acp,
            chat(windows, ground, session) as terminal,
        ):
            acp.answers["session/request_permission"] = lambda _: None
            await acp.initialize()
            folder = {"cwd": str(ground.root), "mcpServers": []}
            await acp.request("session/load", {"sessionId": session, **folder})
            run = editor.call("agent/prompt", prompt("go", wait=True))
            await soon(lambda: dialog.asked)
            await acp.until(lambda: acp.asked("session/request_permission"))
            await soon(lambda: terminal.seen(PermissionRequested))
            request = terminal.seen(PermissionRequested)[0].request.request
            (asked,) = (
                one for way, one in acp.record if way == "<" and "id" in one and "method" in one
            )
            match answered_by:
                case "editor":
                    dialog.replies[0]({"option": "allowOnce"})
                case "acp":
                    chosen = {"outcome": "selected", "optionId": option_of(asked["params"])}
                    acp.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": chosen}})
                case _:
                    await terminal.session.request(
                        "agent/permission/respond", {"request": request, "option": "allowOnce"}
                    )
            assert (await run.result())["status"] == "completed"
            await stream.wait(type="run.ended")
            await soon(lambda: terminal.seen(RunEnded))
            await acp.until(lambda: acp.said() == "done")
            (resolved,) = terminal.seen(PermissionResolved)
            assert resolved.request == request
            withdrawn = [one["requestId"] for one in acp.asked("$/cancel_request")]
            assert withdrawn == ([] if answered_by == "acp" else [asked["id"]])
            in_editor = [one["method"] for one in editor.received if "method" in one]
            assert ("$/cancelRequest" in in_editor) is (answered_by != "editor")
            assert acp.said("user_message_chunk") == "go"
    assert (ground.root / "x").exists()
