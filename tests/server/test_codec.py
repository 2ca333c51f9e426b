"""What is no message is told from its bytes: depth, digits, halves of surrogate pairs."""

import json

import pytest

from server.lsp.codec import MAX_DEPTH, MAX_DIGITS, BadMessage, Notification, Request, decode
from server.lsp.rpc import PARSE_ERROR


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
    assert isinstance(message, Request)
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
    assert isinstance(told, Notification)
    assert told.params == json.loads(f'"{lone}"')
