"""What the process of this machine's model says on the wire, with a runtime that says what it is told."""

import json
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest

from agent_core.kernel import JsonObject
from agent_core.providers.adapters.local.answering import (
    NotARequest,
    answer_request,
    read_request,
)

PROGRESS: dict[str, Any] = {"choices": [], "prompt_progress": {"processed": 0}}
ERROR = {"error": {"code": 400, "message": "exceeds the available context size"}}


def word(text: str) -> dict[str, Any]:
    return {"model": "/where/it/lies.gguf", "choices": [{"index": 0, "delta": {"content": text}}]}


class Prompter:
    """A runtime that tells given pieces; with `endless`, the last one until it is stopped."""

    def __init__(self, pieces: Sequence[JsonObject], *, endless: bool = False) -> None:
        self._pieces = pieces
        self._endless = endless
        self._within = threading.Lock()
        self.bodies: list[JsonObject] = []
        self.stopped = 0

    def handle_chat_completions(self, body: JsonObject, tell: Callable[[JsonObject], bool]) -> None:
        assert self._within.acquire(blocking=False), "asked twice at a time"
        self.bodies.append(body)
        for piece in self._pieces:
            if tell(piece):
                self.stopped += 1
        while self._endless and not tell(self._pieces[-1]):
            pass
        self._within.release()


@asynccontextmanager
async def serving(runtime: Prompter) -> AsyncGenerator[int]:
    """Serve on a port of this machine; leaving waits until every request is over."""
    turns = anyio.Lock()

    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            try:
                body = await read_request(stream)
            except NotARequest:
                return
            await answer_request(stream, body, runtime=runtime, turns=turns)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, answer)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 - not Django
        group.cancel_scope.cancel()


def request(path: str = "/v1/chat/completions", **body: Any) -> bytes:
    raw = json.dumps({"model": "m", "messages": [], **body}).encode()
    return f"POST {path} HTTP/1.1\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw


async def said(port: int, raw: bytes) -> tuple[str, str]:
    """Send bytes one by one at first, and give the answer's first line and body."""
    found = bytearray()
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        for at in range(20):
            await stream.send(raw[at : at + 1])
        await stream.send(raw[20:])
        try:
            while True:
                found += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass
    head, _, body = found.decode().partition("\r\n\r\n")
    return head.partition("\r\n")[0], body


async def test_pieces_become_events_and_progress_a_sign_of_life() -> None:
    runtime = Prompter([PROGRESS, word("Hel"), word("lo")])
    async with serving(runtime) as port:
        line, body = await said(port, request())
    assert line == "HTTP/1.1 200 X"
    first, *events, done, rest = body.split("\n\n")
    assert (first, done, rest) == (": ", "data: [DONE]", "")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    assert [one["choices"][0]["delta"]["content"] for one in chunks] == ["Hel", "lo"]
    assert {one["model"] for one in chunks} == {"smollm2-135m"}
    assert (runtime.bodies[0]["stream"], runtime.bodies[0]["return_progress"]) == (True, True)


async def test_with_tools_an_object_becomes_a_call() -> None:
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    runtime = Prompter([word('{"tool": "read", "arguments": {"a": 1}}'), end])
    async with serving(runtime) as port:
        _, body = await said(port, request(tools=[tool]))
    assert '"arguments":{' not in body
    assert '"finish_reason":"tool_calls"' in body
    assert body.endswith("data: [DONE]\n\n")


async def test_an_error_before_anything_is_the_answer() -> None:
    async with serving(Prompter([ERROR])) as port:
        line, body = await said(port, request())
    assert line == "HTTP/1.1 400 X"
    assert json.loads(body) == ERROR


async def test_an_error_after_that_is_an_event() -> None:
    async with serving(Prompter([word("a"), ERROR])) as port:
        line, body = await said(port, request())
    assert line == "HTTP/1.1 200 X"
    assert json.loads(body.split("\n\n")[1].removeprefix("data: ")) == ERROR


async def test_an_answer_of_nothing_is_no_answer() -> None:
    async with serving(Prompter([])) as port:
        assert await said(port, request()) == ("", "")


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (request("/v1/models"), "HTTP/1.1 404 X"),
        (request().replace(b'"model"', b"'model'"), ""),
        (request().replace(b"Length: ", b"Length: x"), ""),
        (b"x" * 100_000, ""),
    ],
    ids=["another address", "no JSON", "no length", "no end of the head"],
)
async def test_what_is_no_request_reaches_no_model(raw: bytes, line: str) -> None:
    runtime = Prompter([word("a")])
    async with serving(runtime) as port:
        assert (await said(port, raw))[0] == line
    assert runtime.bodies == []


async def test_a_client_that_leaves_ends_the_work_and_the_next_gets_its_turn() -> None:
    runtime = Prompter([word("a")], endless=True)
    async with serving(runtime) as port:
        for _ in range(3):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(request())
                assert await stream.receive()
    assert len(runtime.bodies) == 3


async def test_one_who_waits_for_a_turn_may_leave() -> None:
    runtime = Prompter([word("a")], endless=True)
    async with serving(runtime) as port, await anyio.connect_tcp("127.0.0.1", port) as first:
        await first.send(request())
        assert await first.receive()
        async with await anyio.connect_tcp("127.0.0.1", port) as second:
            await second.send(request())
        assert await first.receive()
    assert len(runtime.bodies) == 1
