"""What is no message is told from its bytes: depth, digits, halves of surrogate pairs."""

import json
import time

import pytest

from tiller_server.lsp.jsonrpc.errors import PARSE_ERROR
from tiller_server.lsp.jsonrpc.messages import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_VALUES,
    BadMessage,
    JsonRpcNotification,
    JsonRpcRequest,
    decode,
)
from tiller_server.lsp.transport.framing import MAX_FRAME_BYTES


def request(params: str, *, request_id: str = "1") -> bytes:
    return f'{{"jsonrpc":"2.0","id":{request_id},"method":"m","params":{params}}}'.encode()


def nested(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + closing * levels


@pytest.mark.parametrize(
    "params",
    [
        pytest.param(nested(MAX_DEPTH - 1), id="as deep as may be"),
        pytest.param('{"a":' * 62 + "[]" + "}" * 62, id="objects"),
        pytest.param("[" + ",".join(["[]"] * 10_000) + "]", id="wide"),
        pytest.param(json.dumps(["[" * 5_000 + "{" * 5_000]), id="brackets in a string"),
        pytest.param(json.dumps(['\\"[' * 500 + "\\\\"]), id="brackets behind quotes"),
        pytest.param(json.dumps({"[" * 100: "]" * 3 + "[" * 100}), id="brackets in a key"),
        pytest.param("9" * MAX_DIGITS, id="digits"),
        pytest.param("1." + "9" * 5_000, id="a long fraction"),
        pytest.param('"\\ud83e\\udd9c"', id="a whole pair"),
    ],
)
def test_what_is_within_the_limits_is_read(params: str) -> None:
    message = decode(request(params))
    assert isinstance(message, JsonRpcRequest)
    assert message.params == json.loads(params)


@pytest.mark.parametrize(
    "params",
    [
        pytest.param(nested(MAX_DEPTH), id="one level more"),
        pytest.param(nested(100_000), id="very deep"),
        pytest.param("[" * 100_000, id="never closed"),
        pytest.param('{"a":' * 20_000 + "1" + "}" * 20_000, id="deep objects"),
        pytest.param('["\\\\",' + nested(MAX_DEPTH) + "]", id="behind a backslash"),
        pytest.param('["\\"",' + nested(MAX_DEPTH) + "]", id="behind a quote"),
        pytest.param("9" * (MAX_DIGITS + 1), id="digits"),
        pytest.param("-" + "9" * 1_000_000, id="a million digits"),
    ],
)
def test_what_is_beyond_them_is_refused(params: str) -> None:
    with pytest.raises(BadMessage) as caught:
        decode(request(params))
    assert caught.value.error.code == PARSE_ERROR


@pytest.mark.parametrize("lone", ["\\ud800", "\\uDFFF", "\\udc00\\ud800", "x\\uD83Ey"])
def test_half_a_pair_is_refused_in_a_request_and_passes_in_a_notification(lone: str) -> None:
    with pytest.raises(BadMessage) as caught:
        decode(request(f'"{lone}"'))
    assert (caught.value.error.code, caught.value.request_id) == (PARSE_ERROR, 1)
    told = decode(f'{{"jsonrpc":"2.0","method":"m","params":"{lone}"}}'.encode())
    assert isinstance(told, JsonRpcNotification)
    assert told.params == json.loads(f'"{lone}"')


TOO_LARGE = ("1e999", "-1e999", "NaN", "Infinity", "-Infinity", "9" * 5_000, "-" + "9" * 5_000)


@pytest.mark.parametrize("number", TOO_LARGE, ids=lambda number: number[:9])
@pytest.mark.parametrize(
    "place",
    ["{number}", "[{number}]", '{{"limit":{number}}}', '{{"a":[1,{{"b":[[{number}]]}}]}}'],
    ids=["params", "item", "member", "nested"],
)
@pytest.mark.parametrize("request_id", [7, -3, "seven", ""])
def test_a_number_that_is_refused_is_answered_under_the_id_of_its_request(
    number: str, place: str, request_id: int | str
) -> None:
    body = request(place.format(number=number), request_id=json.dumps(request_id))
    with pytest.raises(BadMessage) as caught:
        decode(body)
    assert (caught.value.error.code, caught.value.request_id) == (PARSE_ERROR, request_id)
    assert "number" in caught.value.error.message
    behind = body.replace(b'"id":', b'"extra":%b,"id":' % number.encode())
    with pytest.raises(BadMessage) as caught:
        decode(behind)
    assert caught.value.request_id == request_id


@pytest.mark.parametrize("number", TOO_LARGE, ids=lambda number: number[:9])
@pytest.mark.parametrize(
    "body",
    [
        '{{"jsonrpc":"2.0","id":{number},"method":"m"}}',
        '{{"jsonrpc":"2.0","method":"m","params":[{number}]}}',
        '{{"jsonrpc":"2.0","id":7,"result":{number}}}',
        '{{"jsonrpc":"2.0","id":7,"error":{{"code":{number},"message":""}}}}',
        '[{{"jsonrpc":"2.0","id":7,"method":"m","params":[{number}]}}]',
        "{number}",
    ],
    ids=["the id", "notification", "result", "error", "batch", "alone"],
)
def test_a_refused_number_without_a_usable_id_of_a_request_is_answered_under_none(
    number: str, body: str
) -> None:
    with pytest.raises(BadMessage) as caught:
        decode(body.format(number=number).encode())
    assert (caught.value.error.code, caught.value.request_id) == (PARSE_ERROR, None)


@pytest.mark.parametrize(
    ("params", "id_is_read"),
    [
        (nested(MAX_DEPTH).encode(), True),
        (nested(100_000).encode(), False),
        (b'"\xff"', True),
        (b'"\xed\xa0\x80"', True),
        (b"}", False),
    ],
    ids=["too deep", "deeper than a parser goes", "no UTF-8", "an encoded surrogate", "no JSON"],
)
def test_a_message_that_is_refused_is_answered_under_its_id_where_that_can_be_read(
    params: bytes, *, id_is_read: bool
) -> None:
    with pytest.raises(BadMessage) as caught:
        decode(b'{"jsonrpc":"2.0","id":7,"method":"m","params":' + params + b"}")
    expected = 7 if id_is_read else None
    assert (caught.value.error.code, caught.value.request_id) == (PARSE_ERROR, expected)


@pytest.mark.parametrize(
    "repeated", ["[", "[],", "{", '{"a":[', "0,", '"",', "1.5,", "[[]],", "null,", '\\"', "]"]
)
def test_a_frame_of_nothing_but_values_is_refused_at_once(repeated: str) -> None:
    head = b'{"jsonrpc":"2.0","id":7,"method":"m","params":['
    body = head + repeated.encode() * ((MAX_FRAME_BYTES - len(head)) // len(repeated))
    began = time.process_time()
    with pytest.raises(BadMessage) as caught:
        decode(body)
    # Every connection waits for it. It takes 0.2 s; it took 2.5 s and more.
    assert time.process_time() - began < 1
    assert caught.value.error.code == PARSE_ERROR


@pytest.mark.parametrize(
    ("head", "request_id"),
    [
        ('{"jsonrpc":"2.0","id":7,"method":"m","params":[', 7),
        ('{ "id" : "a", "jsonrpc" : "2.0", "method" : "m", "params" : [', "a"),
        ('{"jsonrpc":"2.0","method":"m","id":7,"params":[', 7),
        ('{"jsonrpc":"2.0","method":"m","params":[', None),
        ('{"jsonrpc":"2.0","id":7,"result":[', None),
        ('[{"jsonrpc":"2.0","id":7,"method":"m","params":[', None),
    ],
)
def test_what_has_too_many_values_is_answered_under_an_id_at_its_beginning(
    head: str, request_id: int | str | None
) -> None:
    with pytest.raises(BadMessage, match="more than") as caught:
        decode(head.encode() + b"0," * MAX_VALUES + b"0]}")
    assert caught.value.request_id == request_id
