"""Ollama's own endpoint: what is sent, what is read, and the promises of every model."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from agent_core.kernel import ToolCallId
from agent_core.messages import (
    AssistantMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_core.providers import ModelRequest, ToolDeclaration
from agent_core.providers.adapters.ollama_chat.request import request_body
from tests.providers.conformance import CHECKS, Scene, Stage, Staged
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback
from tests.providers.replay import HELLO, LAB, Outcome, ask, model_at

API = "ollama-chat"
FACTS = replace(LAB, api=API, images=True)
READ = ToolDeclaration(
    name="read", description="Reads.", parameters={"type": "object", "properties": {}}
)
PICTURE = Image(mime="image/png", data="aWs=")
NDJSON = {"content-type": "application/x-ndjson"}


def line(**message: Any) -> dict[str, Any]:
    return {"model": "m", "message": {"role": "assistant", **message}, "done": False}


def end(reason: str = "stop", **message: Any) -> dict[str, Any]:
    counts = {"prompt_eval_count": 10, "eval_count": 5}
    return line(content="", **message) | {"done": True, "done_reason": reason} | counts


def called(name: str, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, **more}}


async def heard(pools: Pools, *lines: Any) -> Outcome:
    steps = [each if isinstance(each, bytes) else as_line(each) for each in lines]
    async with loopback(Reply(steps, headers=NDJSON)) as server:
        return await ask(model_at(server.url, API, pools()))


def test_a_conversation_is_sent_in_its_own_form():
    call = ToolCall(id=ToolCallId("c1"), name="read", arguments={"path": "ä"})
    answer = AssistantMessage(
        content=(Thinking(text="hm"), Text(text="ok"), call),
        api=API,
        provider="lab",
        model="m",
        stop_reason="tool_use",
        at_ms=0,
    )
    request = ModelRequest(
        system="Be brief.",
        messages=(
            UserMessage(content=(Text(text="look"), PICTURE), at_ms=0),
            answer,
            ToolResultMessage(call_id=call.id, tool_name="read", content=(PICTURE,), at_ms=0),
        ),
        tools=(READ,),
        max_tokens=500,
    )
    assert request_body(request, FACTS) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "look", "images": ["aWs="]},
            {
                "role": "assistant",
                "content": "ok",
                "thinking": "hm",
                "tool_calls": [
                    {"id": "c1", "function": {"name": "read", "arguments": {"path": "ä"}}}
                ],
            },
            {
                "role": "tool",
                "content": "(see attached image)",
                "images": ["aWs="],
                "tool_name": "read",
                "tool_call_id": "c1",
            },
        ],
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": {"num_predict": 500, "num_ctx": 200_000},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "Reads.",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
    }


@pytest.mark.parametrize(
    ("window", "compat", "sent"),
    [(200_000, {"numCtx": 8192}, 8192), (200_000, {"numCtx": 0}, None), (0, {}, None)],
    ids=["told", "left-to-the-server", "unknown"],
)
def test_the_window_is_the_one_that_the_agent_counts_on(
    window: int, compat: dict[str, Any], sent: int | None
):
    body: Any = request_body(HELLO, replace(FACTS, context_window=window, compat=compat))
    assert body["options"].get("num_ctx") == sent


@pytest.mark.parametrize(
    ("compat", "on", "off"),
    [
        ({}, True, False),
        ({"thinkingLevelMap": {"off": "low", "low": "low"}}, "low", "low"),
    ],
    ids=["switch", "degrees"],
)
def test_thinking_is_a_switch_or_a_degree(compat: dict[str, Any], on: object, off: object):
    facts = replace(FACTS, reasoning=True, compat=compat)
    assert request_body(replace(HELLO, thinking="low"), facts)["think"] == on
    assert request_body(HELLO, facts)["think"] == off
    assert "think" not in request_body(HELLO, FACTS)


@pytest.mark.parametrize("path", ["", "/", "/v1", "/api"])
async def test_it_asks_its_own_address(path: str, pools: Pools):
    async with loopback(Reply([as_line(each) for each in SCENES["words"]])) as server:
        outcome = await ask(model_at(server.url + path, API, pools()))
    assert outcome.text == "Hello"
    assert [asked.path for asked in server.asked] == ["/api/chat"]


async def test_calls_without_ids_get_some_and_whole_arguments_are_taken(pools: Pools):
    calls = [
        called("read", arguments={"path": "a"}),
        called("ls", arguments=None),
        called("read", arguments='{"path":"b"}'),
    ]
    outcome = await heard(pools, line(content="", tool_calls=calls), end())
    assert outcome.message is not None
    made = outcome.message.tool_calls
    assert [(call.name, call.arguments) for call in made] == [
        ("read", {"path": "a"}),
        ("ls", {}),
        ("read", {"path": "b"}),
    ]
    assert len({call.id for call in made}) == 3
    assert all(call.id for call in made)
    assert (outcome.message.stop_reason, outcome.message.raw_stop_reason) == ("tool_use", "stop")


async def test_an_error_in_the_middle_ends_the_answer(pools: Pools):
    outcome = await heard(
        pools, line(content="a"), {"error": "llama runner process has terminated"}
    )
    assert outcome.text == "a"
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.before_first_byte) == ("server", False)
    assert "llama runner" in str(outcome.error)


async def test_a_conversation_that_does_not_fit_is_told_as_such(pools: Pools):
    body = b'{"error":"the input length exceeds the context length"}'
    async with loopback(Reply([body], status=400)) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert outcome.error is not None
    assert outcome.error.reason == "context_overflow"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([end("load")], "server"),
        ([line(content="a"), b"oops\n"], "protocol"),
        ([], "protocol"),
        ([b'{"done": tr'], "protocol"),
    ],
    ids=["only-loaded", "no-json", "nothing", "half-a-line"],
)
async def test_what_is_no_answer_is_an_error(lines: list[Any], reason: str, pools: Pools):
    outcome = await heard(pools, *lines)
    assert outcome.error is not None
    assert outcome.error.reason == reason


async def test_a_last_line_needs_no_end(pools: Pools):
    last = end() | {"message": {"content": "ä"}}
    outcome = await heard(pools, b"\xef\xbb\xbf\r\n", json.dumps(last, ensure_ascii=False).encode())
    assert (outcome.text, outcome.error) == ("ä", None)


SCENES: dict[Scene, list[Any]] = {
    "words": [line(content="Hel"), line(content="lo"), end()],
    "everything": [
        line(content="", thinking="h"),
        line(content="", thinking="m"),
        line(content="Hello"),
        line(
            content="",
            tool_calls=[
                called("read", arguments={"path": "a"}) | {"id": "c1"},
                called("ls", arguments={}) | {"id": "c2"},
            ],
        ),
        end(),
    ],
    "cut": [line(content="Hel")],
    "held": [line(content="Hel")],
}


def as_line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def staged(pools: Pools) -> Stage:
    @asynccontextmanager
    async def stage(scene: Scene) -> AsyncGenerator[Staged]:
        reply = Reply([b'{"error":"too many requests"}'], status=429)
        if scene != "refused":
            hold = [anyio.Event()] if scene == "held" else []
            reply = Reply([*map(as_line, SCENES[scene]), *hold])
        async with loopback(reply) as server:
            yield Staged(model=model_at(server.url, API, pools()), left=server.gone.is_set)

    return stage


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_promise(check: Callable[[Stage], Any], pools: Pools):
    await check(staged(pools))
