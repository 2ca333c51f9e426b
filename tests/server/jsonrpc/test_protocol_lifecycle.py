"""A connection's life: initialize, shutdown, exit, the end of input, and what is settled then."""

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.support.lsp.echo_server import make_connection
from tests.support.lsp.wire_peer import WAIT_S, PeerGone, serving
from tiller_server.lsp.jsonrpc import lsp_connection
from tiller_server.lsp.jsonrpc.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    SERVER_NOT_INITIALIZED,
)
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.process import parent_watch

ROOT = Path(__file__).resolve().parents[3]


def start_waiting_process() -> subprocess.Popen[bytes]:
    """Start a process that ends when it gets a line."""
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


async def test_requests_before_initialize_are_refused_and_notifications_dropped() -> None:
    connection = make_connection()
    noted: list[dict[str, Any]] = []

    async def note(params: dict[str, Any]) -> None:
        noted.append(params)

    connection.add_agent_notification("agent/note", note)
    async with serving(connection) as served:
        answer = await served.peer.ask(1, "agent/echo")
        assert answer["error"]["code"] == SERVER_NOT_INITIALIZED
        served.peer.send(method="agent/note", params={"too": "early"})
        await served.peer.initialize()
        served.peer.send(method="agent/note", params={"in": "time"})
        await served.peer.ask(2, "agent/echo")
        assert noted == [{"in": "time"}]


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"capabilities": []},
        {"capabilities": {}, "processId": "4"},
        {"capabilities": {}, "rootUri": "not a uri\x00"},
        {"capabilities": {}, "rootUri": 5},
        {"capabilities": {}, "workspaceFolders": [{"uri": "nope", "name": "n"}]},
    ],
)
async def test_a_bad_initialize_is_refused_and_may_be_tried_again(params: object) -> None:
    async with serving(make_connection()) as served:
        answer = await served.peer.ask(1, "initialize", params=params)
        assert answer["error"]["code"] == INVALID_PARAMS
        assert "capabilities" in (await served.peer.initialize())["result"]
        assert (await served.peer.ask(2, "agent/echo"))["result"] == {}


async def test_initialize_survives_enum_values_of_a_newer_protocol() -> None:
    symbols = {"documentSymbol": {"symbolKind": {"valueSet": [1, 2, 99]}}}
    async with serving(make_connection()) as served:
        answer = await served.peer.initialize(textDocument=symbols)
        assert "capabilities" in answer["result"]


async def test_initialize_is_taken_once() -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        answer = await served.peer.initialize()
        assert answer["error"]["code"] == INVALID_REQUEST


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["utf-16", "utf-8"], "utf-8"),
        (["utf-32", "utf-16"], "utf-32"),
        (["utf-7"], "utf-16"),
        (None, "utf-16"),
    ],
)
async def test_utf_8_is_chosen_whenever_it_is_offered(
    offered: list[str] | None, chosen: str
) -> None:
    async with serving(make_connection()) as served:
        answer = await served.peer.initialize(general={"positionEncodings": offered})
        assert answer["result"]["capabilities"]["positionEncoding"] == chosen


async def test_capabilities_can_be_amended_and_the_clients_are_kept_as_sent() -> None:
    connection = make_connection()

    def amend(result: types.InitializeResult) -> None:
        result.capabilities.experimental = {"agent": {"v": 1, "saw": connection.client_params}}

    connection.amend_capabilities(amend)
    experimental = {"agent": {"type_name": "x", "": [None]}}
    async with serving(connection) as served:
        answer = await served.peer.initialize(experimental=experimental)
        agent = answer["result"]["capabilities"]["experimental"]["agent"]
        assert agent["saw"]["capabilities"] == {"experimental": experimental}


async def test_shutdown_then_exit_is_orderly_and_every_id_is_answered() -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        served.peer.send(id="open", method="agent/wait")
        served.peer.send(id="stop", method="shutdown")
        served.peer.send(id="late", method="agent/echo")
        served.peer.send(method="exit")
        answers = {message["id"]: message for message in await served.peer.read_to_end()}
        assert await served.exit_code() == 0
    assert answers["stop"]["result"] is None
    assert answers["open"]["error"]["code"] == REQUEST_CANCELLED
    assert answers["late"]["error"]["code"] == INVALID_REQUEST
    assert len(answers) == 3


async def test_a_cancelled_handler_can_tell_a_leaving_client_from_a_changed_mind() -> None:
    connection = LspConnection("t", "1")

    async def wait(_: dict[str, Any]) -> object:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"closing": connection.is_closing}
        return None

    connection.add_agent_method("agent/wait", wait)
    async with serving(connection) as served:
        await served.peer.initialize()
        served.peer.send(id=1, method="agent/wait")
        served.peer.send(id=2, method="agent/wait")
        served.peer.send(method="$/cancelRequest", params={"id": 1})
        assert (await served.peer.answer_to(1))["result"] == {"closing": False}
        served.peer.send(id=3, method="shutdown")
        assert (await served.peer.answer_to(2))["result"] == {"closing": True}


@pytest.mark.parametrize("initialized", [True, False])
async def test_exit_without_shutdown_is_not_orderly(*, initialized: bool) -> None:
    async with serving(make_connection()) as served:
        if initialized:
            await served.peer.initialize()
        served.peer.send(method="exit")
        assert await served.exit_code() == 1


async def test_messages_after_exit_do_nothing() -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        served.peer.send(method="exit")
        served.peer.send(id=9, method="agent/echo")
        assert await served.peer.read_to_end() == []


@pytest.mark.parametrize("cut_off", [b"", b'Content-Length: 50\r\n\r\n{"json'])
async def test_the_end_of_input_settles_and_answers_what_was_open(cut_off: bytes) -> None:
    connection = make_connection()
    settled: list[str] = []

    async def first() -> None:
        settled.append("first")

    async def second() -> None:
        settled.append("second")
        message = "a broken clean-up stops no other"
        raise RuntimeError(message)

    connection.on_close(first)
    connection.on_close(second)
    async with serving(connection) as served:
        await served.peer.initialize()
        served.peer.send(id=1, method="agent/partial")
        served.peer.send_raw(cut_off)
        served.peer.writer.write_eof()
        assert (await served.peer.answer_to(1))["result"] == {"partial": True}
        assert await served.exit_code() == 0
    assert settled == ["second", "first"]


async def test_a_handler_that_ignores_its_cancellation_is_left_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection = make_connection()
    let_go = asyncio.Event()

    async def stubborn(_: dict[str, Any]) -> object:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return None

    connection.add_agent_method("agent/stubborn", stubborn)
    async with serving(connection) as served:
        await served.peer.initialize()
        served.peer.send(id=1, method="agent/stubborn")
        await served.peer.ask(2, "agent/echo")
        connection.close(7)
        assert await served.exit_code() == 7
    assert "agent/stubborn" in caplog.text
    let_go.set()


async def test_exit_of_one_connection_touches_no_other() -> None:
    async with serving(make_connection()) as first, serving(make_connection()) as second:
        await first.peer.initialize()
        await second.peer.initialize()
        second.peer.send(id=1, method="agent/partial")
        first.peer.send(method="exit")
        assert await first.exit_code() == 1
        assert (await second.peer.ask(2, "agent/echo"))["result"] == {}
        second.peer.send(method="$/cancelRequest", params={"id": 1})
        assert (await second.peer.answer_to(1))["result"] == {"partial": True}
        with pytest.raises(PeerGone):
            await first.peer.read()


async def test_answers_go_to_the_connection_that_asked() -> None:
    async with serving(make_connection()) as first, serving(make_connection()) as second:
        await first.peer.initialize()
        await second.peer.initialize()
        first.peer.send(id=1, method="agent/partial")
        await second.peer.ask(1, "agent/echo", params={"mine": True})
        first.peer.send(method="$/cancelRequest", params={"id": 1})
        assert (await first.peer.answer_to(1))["result"] == {"partial": True}


async def test_a_client_whose_process_ends_is_noticed() -> None:
    child = start_waiting_process()
    waiting = asyncio.get_running_loop().create_task(
        parent_watch.wait_until_gone(child.pid, every_s=0.01)
    )
    assert parent_watch.can_watch(child.pid)
    await asyncio.sleep(0)
    assert not waiting.done()
    child.communicate(b"\n")
    async with asyncio.timeout(WAIT_S):
        await waiting
    assert not parent_watch.can_watch(child.pid)


@pytest.mark.parametrize("pid", [0, -1, 2**22 - 1, 2**70])
def test_a_process_that_is_none_is_not_watched(pid: int) -> None:
    assert not parent_watch.can_watch(pid)


async def test_the_process_of_initialize_is_watched_on_request() -> None:
    connection = make_connection()
    child = start_waiting_process()
    async with serving(connection, parent="watch") as served:
        params = {"processId": child.pid, "rootUri": None, "capabilities": {}}
        await served.peer.ask(1, "initialize", params=params)
        child.communicate(b"\n")
        assert await served.exit_code() == 0


async def test_nothing_keeps_a_connection_after_its_end() -> None:
    connection = make_connection()
    gone = weakref.ref(connection), weakref.ref(connection.protocol)
    async with serving(connection) as served:
        await served.peer.initialize()
        await served.peer.ask(1, "agent/echo")
        served.peer.send(id=2, method="agent/wait")
    del connection, served
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


async def test_cancelling_serve_still_settles() -> None:
    connection = make_connection()
    settled = asyncio.Event()

    async def settle() -> None:
        settled.set()

    connection.on_close(settle)
    async with serving(connection) as served:
        await served.peer.initialize()
        served.cancel()
        assert await served.peer.read_to_end() == []
        assert settled.is_set()


def test_a_name_can_have_one_handler() -> None:
    connection = make_connection()

    async def other(params: dict[str, Any]) -> object:
        return params

    with pytest.raises(ValueError, match="agent/echo"):
        connection.add_agent_method("agent/echo", other)


def test_graces_add_up_to_less_than_an_editors_patience() -> None:
    total = (
        lsp_connection.HANDLER_GRACE_S
        + lsp_connection.CLOSER_GRACE_S
        + lsp_connection.FLUSH_GRACE_S
    )
    assert total <= 10


def test_this_process_can_be_watched() -> None:
    assert parent_watch.can_watch(os.getpid())


def test_a_connection_needs_nothing_heavy_to_answer_initialize() -> None:
    code = (
        "import sys, tiller_server.lsp.jsonrpc.lsp_connection, tiller_server.lsp.transport.exports\n"
        "heavy = {'pydantic', 'anyio', 'httpx', 'agent_core', 'websockets', 'psutil'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=15, check=True
    )
    assert done.stdout == b"[]\n"
