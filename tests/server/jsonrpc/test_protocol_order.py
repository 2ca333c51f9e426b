"""Calls in flight: cancelled, ordered, counted, each answered exactly once."""

import asyncio
import logging
from typing import Any

from hypothesis import given, settings, strategies as st
from lsprotocol import types

from tests.support.lsp.echo_server import make_connection
from tests.support.lsp.wire_peer import Peer, serving
from tiller_server.lsp.jsonrpc.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
)
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection


async def answers_still(peer: Peer) -> None:
    """The connection lives and is in step."""
    assert await peer.ask("probe", "agent/echo", params={"still": "here"}) == {
        "jsonrpc": "2.0",
        "id": "probe",
        "result": {"still": "here"},
    }


def error_of(answer: dict[str, Any]) -> int:
    assert "result" not in answer
    return answer["error"]["code"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**31), max_value=10**31)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
METHODS = st.sampled_from(
    [
        "agent/echo",
        "agent/wait",
        "agent/partial",
        "agent/fail",
        "textDocument/hover",
        "workspace/executeCommand",
        "initialize",
        "$/cancelRequest",
        "textDocument/didOpen",
        "textDocument/didChange",
        "workspace/didChangeWorkspaceFolders",
        "window/workDoneProgress/cancel",
        "exit?",
    ]
)


async def test_cancelling_ends_a_request_with_its_code() -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        served.peer.send(id=1, method="agent/wait")
        served.peer.send(method="$/cancelRequest", params={"id": 1})
        assert error_of(await served.peer.answer_to(1)) == REQUEST_CANCELLED
        await answers_still(served.peer)


async def test_a_handler_may_answer_its_cancellation_with_a_result() -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        served.peer.send(id="p", method="agent/partial")
        served.peer.send(method="$/cancelRequest", params={"id": "p"})
        assert (await served.peer.answer_to("p"))["result"] == {"partial": True}


async def test_cancelling_a_command_stops_its_coroutine_and_answers_once() -> None:
    connection = LspConnection("t", "1")
    stopped = asyncio.Event()

    async def stuck(_: tuple[Any, ...]) -> object:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return None

    connection.add_command("stuck", stuck)
    async with serving(connection) as served:
        await served.peer.initialize()
        served.peer.send(id=1, method="workspace/executeCommand", params={"command": "stuck"})
        served.peer.send(method="$/cancelRequest", params={"id": 1})
        assert error_of(await served.peer.answer_to(1)) == REQUEST_CANCELLED
        assert stopped.is_set()
        served.connection.close()
        assert await served.peer.read_to_end() == []


async def test_commands_get_their_arguments_as_sent() -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        for arguments in ([], [1, {"type_name": 2, "": None}, "x"], None):
            params = {"command": "repeat", "arguments": arguments}
            answer = await served.peer.ask(1, "workspace/executeCommand", params=params)
            assert answer["result"] == (arguments or [])
        answer = await served.peer.ask(1, "workspace/executeCommand", params={"command": "no"})
        assert error_of(answer) == INVALID_PARAMS


async def test_an_id_in_flight_is_refused_and_the_first_call_goes_on() -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        served.peer.send(id=5, method="agent/partial")
        answer = await served.peer.ask(5, "agent/echo")
        assert error_of(answer) == INVALID_REQUEST
        served.peer.send(method="$/cancelRequest", params={"id": 5})
        assert (await served.peer.answer_to(5))["result"] == {"partial": True}


async def test_a_number_and_its_text_are_different_ids() -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        served.peer.send(id=21, method="agent/partial")
        served.peer.send(id="21", method="agent/wait")
        served.peer.send(method="$/cancelRequest", params={"id": "21"})
        assert error_of(await served.peer.answer_to("21")) == REQUEST_CANCELLED
        served.peer.send(method="$/cancelRequest", params={"id": 21})
        assert (await served.peer.answer_to(21))["result"] == {"partial": True}


async def test_thread_handlers_that_fill_the_pool_do_not_stop_the_reader() -> None:
    connection = make_connection()
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    @connection.feature(types.TEXT_DOCUMENT_DEFINITION)
    @connection.thread()
    def definition(_: types.DefinitionParams) -> None:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(10)

    async with serving(connection) as served:
        await served.peer.initialize()
        params = {"textDocument": {"uri": "a"}, "position": {"line": 0, "character": 0}}
        for number in range(40):
            served.peer.send(id=number, method="textDocument/definition", params=params)
        await answers_still(served.peer)
        served.peer.send(method="$/cancelRequest", params={"id": 39})
        assert error_of(await served.peer.answer_to(39)) == REQUEST_CANCELLED
        release.set()
        assert (await served.peer.answer_to(38))["result"] is None


async def test_messages_take_effect_in_the_order_of_their_arrival() -> None:
    connection = LspConnection("t", "1")
    seen: list[int] = []

    async def note(params: dict[str, Any]) -> None:
        seen.append(params["n"])
        await asyncio.sleep(0)

    async def tell(_: dict[str, Any]) -> object:
        return list(seen)

    connection.add_agent_notification("agent/note", note)
    connection.add_agent_method("agent/tell", tell)

    @connection.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        seen.append(int(params.text_document.uri))

    async with serving(connection) as served:
        await served.peer.initialize()
        for number in range(0, 200, 2):
            served.peer.send(method="agent/note", params={"n": number})
            served.peer.send(
                method="textDocument/didSave", params={"textDocument": {"uri": str(number + 1)}}
            )
        assert (await served.peer.ask(1, "agent/tell"))["result"] == list(range(200))


async def test_document_changes_reach_the_mirror_even_when_they_make_no_sense() -> None:
    connection = LspConnection("t", "1")
    seen: list[object] = []

    async def changed(params: dict[str, Any]) -> None:
        seen.append(params["contentChanges"][0]["range"]["start"])

    connection.add_agent_notification("textDocument/didChange", changed)

    async def tell(_: dict[str, Any]) -> object:
        return seen

    connection.add_agent_method("agent/tell", tell)
    async with serving(connection) as served:
        await served.peer.initialize()
        for start in ({"line": -1, "character": -5}, {"line": 0.5, "character": 0}):
            change = {"range": {"start": start, "end": start}, "text": "x"}
            served.peer.send(
                method="textDocument/didChange",
                params={"textDocument": {"uri": "a", "version": 2}, "contentChanges": [change]},
            )
        assert (await served.peer.ask(1, "agent/tell"))["result"] == [
            {"line": -1, "character": -5},
            {"line": 0.5, "character": 0},
        ]


async def test_too_many_requests_in_flight_are_told_to_come_again() -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        for number in range(1024):
            served.peer.send(id=number, method="agent/wait")
        answer = await served.peer.ask("one more", "agent/echo")
        assert answer["error"]["data"]["kind"] == "Overloaded"
        served.peer.send(method="$/cancelRequest", params={"id": 0})
        await served.peer.answer_to(0)
        await answers_still(served.peer)


@settings(max_examples=40)
@given(
    calls=st.lists(st.tuples(METHODS, st.booleans(), JSON), max_size=20),
    cancelled=st.lists(st.integers(min_value=0, max_value=20)),
)
def test_every_id_is_answered_exactly_once_whatever_is_sent(
    calls: list[tuple[str, bool, object]], cancelled: list[int]
) -> None:
    async def talk() -> list[dict[str, Any]]:
        async with serving(make_connection()) as served:
            await served.peer.initialize()
            for number, (method, is_request, params) in enumerate(calls):
                members = {"id": number} if is_request else {}
                served.peer.send(method=method, params=params, **members)
            for number in cancelled:
                served.peer.send(method="$/cancelRequest", params={"id": number})
            served.peer.send(id="end", method="shutdown")
            served.peer.send(method="exit")
            messages = await served.peer.read_to_end()
            assert await served.exit_code() == 0
            return messages

    logging.disable()
    try:
        answered = [message["id"] for message in asyncio.run(talk())]
    finally:
        logging.disable(logging.NOTSET)
    asked = [number for number, (_, is_request, _) in enumerate(calls) if is_request]
    assert sorted(answered, key=str) == sorted([*asked, "end"], key=str)
