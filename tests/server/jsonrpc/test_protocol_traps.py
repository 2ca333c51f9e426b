"""Each trap of the library underneath, closed: one test a trap, named for what a client sees."""

import asyncio
import json
import logging
from typing import Any

import pytest
from hypothesis import strategies as st

from tests.support.lsp.echo_server import make_connection
from tests.support.lsp.wire_peer import Peer, serving
from tiller_server.lsp.jsonrpc.errors import (
    CONTENT_MODIFIED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_FAILED,
    RpcError,
)
from tiller_server.lsp.transport.framing import MAX_FRAME_BYTES, frame


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


async def test_an_answer_that_is_too_large_names_its_size_the_limit_and_what_to_do() -> None:
    connection = make_connection()

    async def give(_: dict[str, Any]) -> object:
        return "x" * MAX_FRAME_BYTES

    connection.add_agent_method("agent/large", give)
    async with serving(connection) as served:
        await served.peer.initialize()
        error = (await served.peer.ask(1, "agent/large"))["error"]
        size = error["data"].pop("bytes")
        assert size > MAX_FRAME_BYTES
        assert (error["code"], error["data"]) == (
            REQUEST_FAILED,
            {
                "kind": "UnsupportedCapability",
                "retryable": False,
                "limitBytes": MAX_FRAME_BYTES,
            },
        )
        for part in (str(size), str(MAX_FRAME_BYTES), "agent/session/read"):
            assert part in error["message"]
        assert (await served.peer.ask(2, "agent/echo", params={"n": 2}))["result"] == {"n": 2}


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


LONE = ["\\ud83d", "\\ude00 and more", "\\ude00\\ud83d"]


@pytest.mark.parametrize("lone", LONE)
async def test_a_request_with_a_lone_surrogate_is_refused_under_its_id(lone: str) -> None:
    async with serving(make_connection()) as served:
        await served.peer.initialize()
        body = f'{{"jsonrpc":"2.0","id":1,"method":"agent/echo","params":{{"t":"{lone}"}}}}'
        served.peer.send_raw(frame(body.encode()))
        assert error_of(await served.peer.answer_to(1)) == PARSE_ERROR
        await answers_still(served.peer)


@pytest.mark.parametrize("lone", LONE)
async def test_lone_surrogates_of_an_editors_text_come_in_and_leave_as_valid_text(
    lone: str,
) -> None:
    connection = make_connection()

    async def tell_back(params: dict[str, Any]) -> None:
        connection.notify("test/back", params)

    connection.add_agent_notification("test/text", tell_back)
    async with serving(connection) as served:
        await served.peer.initialize()
        body = f'{{"jsonrpc":"2.0","method":"test/text","params":{{"t":"{lone}"}}}}'
        served.peer.send_raw(frame(body.encode()))
        text = (await served.peer.read())["params"]["t"]
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
        (b'{"jsonrpc":"2.0","id":1,"method":"agent/echo","params":{"x":NaN}}', PARSE_ERROR, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"agent/echo","params":{"x":1e999}}', PARSE_ERROR, 1),
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


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
