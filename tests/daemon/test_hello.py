"""The first line of a client is read with limits, and understood or refused in words."""

import asyncio
import json

import pytest

from tiller_server.daemon.admission.handshake import (
    MAX_HANDSHAKE_BYTES,
    check_token,
    is_newer,
    parse_handshake,
    read_handshake,
)
from tiller_server.daemon.errors import ClientRefused, HandshakeMissing

LINE = b'{"v":1,"token":"t"}'


def fed(*chunks: bytes, ends: bool = True) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    if ends:
        reader.feed_eof()
    return reader


async def test_what_comes_after_the_line_is_kept() -> None:
    line, rest = await read_handshake(fed(LINE + b"\nContent-Length: 2\r\n\r\n{}"))
    assert (line, rest) == (LINE, b"Content-Length: 2\r\n\r\n{}")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (b"POST /agent HTTP/1.1\r\n", "HTTP"),
        (b"OPTIONS * HTTP/1.1\r\n", "HTTP"),
        (b"Content-Length: 5\r\n\r\n", "does not begin with a hello"),
        (b"\n", "does not begin with a hello"),
        (b"\x16\x03\x01\x02", "does not begin with a hello"),
        (b"", "left before"),
        (LINE, "left before"),
        (b"{" + b"x" * (MAX_HANDSHAKE_BYTES + 100_000), "more than"),
        (b"{" + b"x" * (MAX_HANDSHAKE_BYTES + 10) + b"\n", "more than"),
    ],
    ids=[
        *("get", "post", "options", "lsp", "empty line", "tls", "nothing", "half", "endless"),
        "long",
    ],
)
async def test_what_is_no_hello_is_sent_away(said: bytes, why: str) -> None:
    with pytest.raises(HandshakeMissing, match=why):
        await read_handshake(fed(said))


@pytest.mark.parametrize("said", [b"", LINE[:9]], ids=["silence", "half a line"])
async def test_who_keeps_us_waiting_is_sent_away(said: bytes) -> None:
    with pytest.raises(HandshakeMissing, match=r"said nothing whole for 0.05 s"):
        await read_handshake(fed(said, ends=False), within_s=0.05)


async def test_ten_thousand_variables_are_read() -> None:
    env = {f"VARIABLE_{number}": "x" * 40 for number in range(10_000)}
    said = json.dumps({"v": 1, "token": "t", "env": env}).encode()
    line, _ = await read_handshake(fed(said[:7], said[7:] + b"\n"))
    assert parse_handshake(line).env == env


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"{}", b'{"v":1}', b'{"v":"1","token":"t"}', b'{"v":true,"token":"t"}', b"\xff{"],
)
def test_a_line_without_what_every_client_says_is_refused(line: bytes) -> None:
    with pytest.raises(ClientRefused) as refused:
        parse_handshake(line)
    assert refused.value.code == "hello"


def test_what_cannot_be_a_variable_is_left_out() -> None:
    env = {"OK": "1", "": "2", "A=B": "3", "NUL": "\0", "N\0": "4", "NUMBER": 5, "LIST": ["6"]}
    found = parse_handshake(json.dumps({"v": 1, "token": "t", "env": env}).encode())
    assert found.env == {"OK": "1"}


def test_a_hello_without_an_environment_is_one() -> None:
    found = parse_handshake(b'{"v":1,"token":"t","cwd":"/w","pid":7}')
    assert (found.env, str(found.cwd), found.pid, found.ask) == (None, "/w", 7, None)


def test_neither_token_nor_environment_is_shown() -> None:
    found = parse_handshake(b'{"v":1,"token":"secret-token","env":{"KEY":"secret-key"}}')
    assert "secret" not in repr(found)


@pytest.mark.parametrize("token", ["", "other", "right\0", "r\N{EURO SIGN}ght", "righ\ud800"])
def test_a_wrong_token_is_refused(token: str) -> None:
    hello = parse_handshake(json.dumps({"v": 1, "token": token}).encode())
    with pytest.raises(ClientRefused) as refused:
        check_token(hello, token="right")
    assert refused.value.code == "token"


def test_the_right_token_may_have_its_newline() -> None:
    check_token(parse_handshake(b'{"v":1,"token":"right\\n"}'), token="right")


@pytest.mark.parametrize(
    ("version", "than", "newer"),
    [
        ("0.2.0", "0.1.0", True),
        ("0.10.0", "0.9.9", True),
        ("0.1.0", "0.1.0", False),
        ("0.1.0", "0.2.0", False),
        ("", "0.1.0", False),
        ("what", "0.1.0", False),
    ],
)
def test_versions_are_compared_by_number(version: str, than: str, *, newer: bool) -> None:
    assert is_newer(version, than=than) is newer
