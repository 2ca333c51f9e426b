"""Each trap of the library underneath, closed: one test a trap, named for what a client sees."""

import asyncio
import json
import logging
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from lsprotocol import types

from server.lsp.frames import frame
from server.lsp.protocol import Connection
from server.lsp.rpc import (
    CONTENT_MODIFIED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    RpcError,
)
from tests.support.echo_server import make_connection
from tests.support.wire_peer import Peer, serving


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


@pytest.mark.parametrize(
    "params",
    [
        {"a-b": 1, "class": 2, "_x": 3, "": 4, "type_name": "not an identifier!"},
        {"nested": {"jsonrpc": "2.0", "id": 1, "method": "exit"}},
        {"list": [{"type_name": "x"}, None, 1.5, True], "jsonrpc": "1.0"},
        {"surrogate pair": "\U0001f600", "cjk": "編輯器"},
    ],
)
async def test_custom_params_arrive_as_they_were_sent(params: dict[str, Any]) -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        assert (await served.peer.ask(1, "agent/echo", params=params))["result"] == params


@pytest.mark.parametrize("rest", [{}, {"params": None}, {"params": {}}])
async def test_omitted_params_are_the_empty_object(rest: dict[str, Any]) -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        assert (await served.peer.ask(1, "agent/echo", **rest))["result"] == {}


@pytest.mark.parametrize("params", ["x", 7, True, [], [1]])
async def test_custom_params_that_are_no_object_are_answered(params: object) -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        assert error_of(await served.peer.ask(1, "agent/echo", params=params)) == INVALID_PARAMS
        await answers_still(served.peer)


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        (None, "params.textDocument is missing"),
        ([], "params must be an object, got an array"),
        (
            {"textDocument": {"uri": 7}, "position": {"line": 0, "character": 0}},
            "params.textDocument.uri must be a string",
        ),
        (
            {"textDocument": {"uri": "a"}, "position": {"line": 0.5, "character": 0}},
            "params.position.line must be an integer",
        ),
        (
            {"textDocument": {"uri": "a"}, "position": {"line": -1, "character": 0}},
            "params.position has a value that the protocol does not allow",
        ),
    ],
)
async def test_ill_typed_params_of_a_known_method_get_one_sentence(
    params: object, complaint: str
) -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        answer = await served.peer.ask(1, "textDocument/hover", params=params)
        message = f"textDocument/hover: {complaint}."
        assert answer["error"] == {"code": INVALID_PARAMS, "message": message}
        await answers_still(served.peer)


async def test_known_methods_get_lsprotocol_types_and_answer_with_them() -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        params = {"textDocument": {"uri": "file:///a"}, "position": {"line": 3.0, "character": 0}}
        answer = await served.peer.ask(1, "textDocument/hover", params=params)
        assert answer["result"] == {"contents": {"kind": "plaintext", "value": "file:///a:3"}}


class Unknown:
    """Nothing that JSON has a form for."""


@pytest.mark.parametrize("result", [Unknown(), {"x": Unknown()}, float("nan"), {1, 2}, {(1,): 2}])
async def test_a_result_that_cannot_be_written_is_answered(result: object) -> None:
    connection = make_connection()

    async def give(_: dict[str, Any]) -> object:
        return result

    connection.add_agent_method("agent/odd", give)
    async with serving(connection) as served:
        await served.peer.initialize()
        assert error_of(await served.peer.ask(1, "agent/odd")) == INTERNAL_ERROR
        await answers_still(served.peer)


async def test_a_circle_is_answered() -> None:
    connection = make_connection()
    circle: dict[str, Any] = {}
    circle["self"] = circle

    async def give(_: dict[str, Any]) -> object:
        return circle

    connection.add_agent_method("agent/circle", give)
    async with serving(connection) as served:
        await served.peer.initialize()
        assert error_of(await served.peer.ask(1, "agent/circle")) == INTERNAL_ERROR


@pytest.mark.parametrize("lone", ["\\ud83d", "\\ude00 and more", "\\ude00\\ud83d"])
async def test_lone_surrogates_come_in_and_leave_as_valid_text(lone: str) -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        body = f'{{"jsonrpc":"2.0","id":1,"method":"agent/echo","params":{{"t":"{lone}"}}}}'
        served.peer.send_raw(frame(body.encode()))
        text = (await served.peer.answer_to(1))["result"]["t"]
        text.encode()
        assert "\N{REPLACEMENT CHARACTER}" in text


@pytest.mark.parametrize("failure", ["agent/fail", "agent/exits", "agent/grouped"])
async def test_no_traceback_and_no_path_reaches_the_wire(
    failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    connection = make_connection()

    async def exits(_: dict[str, Any]) -> object:
        raise SystemExit(3)

    async def grouped(_: dict[str, Any]) -> object:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(read_secret())
        return None

    async def read_secret() -> None:
        raise OSError(2, "No such file", "/home/someone/secret.txt")

    connection.add_agent_method("agent/exits", exits)
    connection.add_agent_method("agent/grouped", grouped)
    async with serving(connection) as served:
        await served.peer.initialize()
        answer = await served.peer.ask(1, failure)
        assert error_of(answer) == INTERNAL_ERROR
        assert answer["error"]["data"] == {"kind": "Internal", "retryable": False}
        assert "someone" not in json.dumps(answer)
        assert "Traceback" not in json.dumps(answer)
        await answers_still(served.peer)
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_an_error_that_a_handler_means_passes_through_also_out_of_a_group() -> None:
    connection = make_connection()

    async def refuse(_: dict[str, Any]) -> object:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(stale())
        return None

    async def stale() -> None:
        raise RpcError(CONTENT_MODIFIED, "The run is another.", {"kind": "RunMismatch"})

    connection.add_agent_method("agent/refuse", refuse)
    async with serving(connection) as served:
        await served.peer.initialize()
        answer = await served.peer.ask(1, "agent/refuse")
        assert answer["error"] == {
            "code": CONTENT_MODIFIED,
            "message": "The run is another.",
            "data": {"kind": "RunMismatch"},
        }


@pytest.mark.parametrize(
    ("body", "code", "request_id"),
    [
        (b"hello", PARSE_ERROR, None),
        (b"", PARSE_ERROR, None),
        (b"\xff\xfe{}", PARSE_ERROR, None),
        ('{"jsonrpc":"2.0"}'.encode("utf-16"), PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"agent/echo","params":{"x":NaN}}', PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"agent/echo","params":{"x":1e999}}', PARSE_ERROR, None),
        (b"[" * 100_000, PARSE_ERROR, None),
        (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, PARSE_ERROR, None),
        (b"1" * 5000, PARSE_ERROR, None),
        (b"[]", INVALID_REQUEST, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"agent/echo"}]', INVALID_REQUEST, None),
        (b'"x"', INVALID_REQUEST, None),
        (b"{}", INVALID_REQUEST, None),
        (b'{"id":7,"method":"agent/echo"}', INVALID_REQUEST, 7),
        (b'{"jsonrpc":2.0,"id":7,"method":"agent/echo"}', INVALID_REQUEST, 7),
        (b'{"jsonrpc":"1.0","id":"7","method":"agent/echo"}', INVALID_REQUEST, "7"),
        (b'{"jsonrpc":"2.0","id":7}', INVALID_REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":7}', INVALID_REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":""}', INVALID_REQUEST, 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"agent/echo"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"agent/echo"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"agent/echo"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"agent/echo"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":"\\ud83d","method":"agent/echo"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"no/such"}', METHOD_NOT_FOUND, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"__class__"}', METHOD_NOT_FOUND, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"$/odd"}', METHOD_NOT_FOUND, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"workspace/applyEdit"}', METHOD_NOT_FOUND, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"textDocument/rename"}', METHOD_NOT_FOUND, 7),
    ],
)
async def test_what_is_no_request_is_answered_with_its_code(
    body: bytes, code: int, request_id: object
) -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        served.peer.send_raw(frame(body))
        answer = await served.peer.read()
        assert (error_of(answer), answer["id"]) == (code, request_id)
        await answers_still(served.peer)


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","method":"$/odd","params":[1]}',
        b'{"jsonrpc":"2.0","method":"no/such","params":"x"}',
        b'{"jsonrpc":"2.0","method":"agent/echo"}',
        b'{"jsonrpc":"2.0","method":"$/cancelRequest"}',
        b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":[]}}',
        b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":999}}',
        b'{"jsonrpc":"2.0","method":"$/progress","params":{"token":"z","value":{}}}',
        b'{"jsonrpc":"2.0","method":"$/setTrace","params":{"value":"loud"}}',
        b'{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":5}}',
        b'{"jsonrpc":"2.0","method":"window/workDoneProgress/cancel","params":{"token":"z"}}',
        b'{"jsonrpc":"2.0","id":424242,"result":{}}',
        b'{"jsonrpc":"2.0","id":[],"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":null,"error":5}',
    ],
)
async def test_what_needs_no_answer_gets_none(body: bytes) -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        served.peer.send_raw(frame(body))
        await answers_still(served.peer)
        served.connection.close()
        assert await served.peer.read_to_end() == []


async def test_a_bad_header_closes_the_connection_with_one_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        served.peer.send_raw(b"Content-Length: -5\r\n\r\n")
        assert await served.peer.read_to_end() == []
        assert await served.exit_code() == 1
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


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
    connection = Connection("t", "1")
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
    connection = Connection("t", "1")
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
    connection = Connection("t", "1")
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


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
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
