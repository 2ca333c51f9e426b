"""Clients that behave badly at one daemon: whoever works beside them notices nothing."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.support.clients.daemons import daemon_here, editor
from tests.support.clients.office import soon
from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tests.support.harness.sizes import at_size
from tests.support.lsp.lsp_answers import LeavesOpen
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import PANEL

pytestmark = [pytest.mark.timeout(90)]

FLOOD = at_size(ci=3_000, campaign=50_000)
ASKED_AT_ONCE = 40


@asynccontextmanager
async def two(ground: Ground) -> AsyncGenerator[tuple[RawClient, RawClient]]:
    """Run a daemon with two editors before the session of one workspace."""
    async with daemon_here(ground.env), AsyncExitStack() as stack:
        seated: list[RawClient] = []
        for _ in range(2):
            one = await stack.enter_async_context(await editor(ground.env))
            await one.initialize(PANEL, root=ground.root)
            await one.request("agent/session/open", {})
            seated.append(one)
        yield seated[0], seated[1]


def rewrites(ground: Ground, text: str) -> Any:
    """Let the model read a file and write it anew; give its path."""
    path = ground.file("a.py", "one\n")
    change = {"path": "a.py", "content": text}
    ground.provider.script(
        [calls(("read", {"path": "a.py"})), calls(("write", change)), says("done")]
    )
    return path


async def test_one_that_never_answers_keeps_only_its_own_dialog(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    async with two(ground) as (silent, good):
        silent.handlers["agent/permission"] = left_open = LeavesOpen()
        good.handlers["agent/permission"] = lambda _, reply: reply({"option": "allowOnce"})
        ground.provider.script([calls(("bash", {"command": "touch x"})), says("done")])
        result = await good.request("agent/prompt", prompt("go", wait=True))
        assert result["status"] == "completed"
        assert (ground.root / "x").exists()
        await soon(lambda: left_open.asked)
        # Long after: its answer is one that came too late, and changes nothing.
        left_open.replies[0]({"option": "rejectAlways"})
        assert (await silent.request("agent/permission/rules", {"op": "list"}))["rules"] == []


async def test_one_that_dies_in_the_middle_of_an_edit_leaves_a_run_that_knows_it(
    ground: Ground,
) -> None:
    async with two(ground) as (dying, good):
        path = rewrites(ground, "two\n")
        asked = asyncio.Event()

        def dies(params: Any, reply: Any) -> None:
            asked.set()

        dying.handlers["agent/edit/apply"] = dies
        dying.open(path.as_uri(), "one\n")
        await dying.request("agent/status", {})
        async with asyncio.TaskGroup() as tasks:
            run = tasks.create_task(good.request("agent/prompt", prompt("go", wait=True)))
            async with asyncio.timeout(20):
                await asked.wait()
            await dying.kill()
        assert run.result()["status"] == "completed"
        told = tool_texts(ground.provider.requests[-1])[-1]
        assert "lost" in told or "verif" in told, told
        snapshot = await good.request("agent/session/open", {})
        assert snapshot["state"] == "idle"
        assert len(snapshot["clients"]) == 1
        assert path.read_text() in {"one\n", "two\n"}


async def test_one_that_answers_twice_is_believed_once(ground: Ground) -> None:
    async with two(ground) as (twice, good):
        path = rewrites(ground, "two\n")
        twice.open(path.as_uri(), "one\n")
        stream = good.subscribe()
        await stream.ready()
        await good.request("agent/prompt", prompt("go"))
        await stream.wait(type="run.ended")
        (asked,) = [one for one in twice.received if one.get("method") == "agent/edit/apply"]
        for status in ("refused", "applied"):
            result = {"documents": [{"uri": path.as_uri(), "status": status}]}
            twice.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        twice.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": 1, "message": "no"}})
        twice.send({"jsonrpc": "2.0", "id": "never asked", "result": None})
        assert "daemon" in await twice.request("agent/status", {})
        assert twice.editor.documents[path.as_uri()].text == "two\n"
        assert len(stream.of("edit.applied")) == 1


async def test_versions_out_of_order_are_followed_and_noted(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    async with two(ground) as (odd, good):
        uri = ground.file("a.py", "disk\n").as_uri()
        caplog.set_level(logging.INFO, logger="tiller_server.lsp.documents.mirror")
        document = {"uri": uri, "languageId": "python", "version": 5, "text": "a\n"}
        odd.notify("textDocument/didOpen", {"textDocument": document})
        for version, text in ((9, "b\n"), (3, "c\n"), (3, "d\n"), (-7, "e\n")):
            changed = {"uri": uri, "version": version}
            odd.notify(
                "textDocument/didChange",
                {"textDocument": changed, "contentChanges": [{"text": text}]},
            )
        await odd.request("agent/status", {})
        ground.provider.script([calls(("read", {"path": "a.py"})), says("done")])
        await good.request("agent/prompt", prompt("go", wait=True))
        assert "e" in tool_texts(ground.provider.requests[-1])[-1].split()
        noted = [one for one in caplog.records if "version" in one.getMessage()]
        assert len(noted) == 1  # after that nobody counts on them


async def test_one_that_floods_is_answered_or_refused_and_delays_nobody_much(
    ground: Ground,
) -> None:
    async with two(ground) as (flooding, good):
        loop = asyncio.get_running_loop()
        uri = ground.file("a.py", "x\n").as_uri()
        flooding.open(uri, "x\n")
        calm_s: list[float] = []
        for _ in range(10):
            began = loop.time()
            await good.request("agent/status", {})
            calm_s.append(loop.time() - began)
        sent = [flooding.call("agent/status", {}) for _ in range(FLOOD // ASKED_AT_ONCE)]
        for at in range(FLOOD):
            flooding.notify("$/odd", {"at": at})
            flooding.notify("agent/editorContext", {"open": [uri] * 10})
        flooded_s: list[float] = []
        while not all(one.answer.done() for one in sent):
            began = loop.time()
            await good.request("agent/status", {})
            flooded_s.append(loop.time() - began)
        for one in sent:
            answer = await one.answer
            assert answer is not None
            assert {"result", "error"} & answer.keys()
        print(
            f"calm {max(calm_s) * 1000:.1f} ms, flooded {max(flooded_s, default=0) * 1000:.1f} ms"
        )
        assert max(flooded_s, default=0.0) <= 2.0
