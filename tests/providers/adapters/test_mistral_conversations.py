"""Mistral's own chat endpoint: what is sent, what is read, and the promises of every model."""

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
from agent_core.providers.adapters.mistral_conversations import request_body
from tests.providers.conformance import CHECKS, Scene, Stage, Staged
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import HELLO, LAB, ask, model_at

API = "mistral-conversations"
MISTRAL = replace(LAB, api=API, images=True)
READ = ToolDeclaration(
    name="read", description="Reads.", parameters={"type": "object", "properties": {}}
)
PICTURE = Image(mime="image/png", data="aWs=")
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
REFUSAL = b'{"object":"error","message":"Rate limit exceeded","type":"rate_limited","code":"1300"}'


def user(*content: Any) -> UserMessage:
    return UserMessage(content=content, at_ms=0)


def said(*content: Any, model: str = "m") -> AssistantMessage:
    return AssistantMessage(
        content=content, api=API, provider="lab", model=model, stop_reason="stop", at_ms=0
    )


def result(call_id: str, *content: Any) -> ToolResultMessage:
    return ToolResultMessage(
        call_id=ToolCallId(call_id), tool_name="read", content=content, at_ms=0
    )


def call(call_id: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=ToolCallId(call_id), name="read", arguments=arguments)


SENT = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": "data:image/png;base64,aWs="},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {
                    "type": "thinking",
                    "thinking": [{"type": "text", "text": "hm"}],
                    "signature": "sig",
                },
                {"type": "text", "text": "ok"},
            ],
            "tool_calls": [
                {
                    "id": "abcDEF123",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path":"ä"}'},
                },
                {
                    "id": "abcDEF124",
                    "type": "function",
                    "function": {"name": "read", "arguments": "{}"},
                },
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "abcDEF123",
            "name": "read",
            "content": [
                {"type": "text", "text": "there"},
                {"type": "image_url", "image_url": "data:image/png;base64,aWs="},
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "abcDEF124",
            "name": "read",
            "content": "(no tool output)",
        },
    ],
    "stream": True,
    "max_tokens": 500,
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


def test_a_conversation_is_sent_in_its_own_form():
    request = ModelRequest(
        system="Be brief.",
        messages=(
            user(Text(text="look"), PICTURE),
            said(
                Thinking(text="hm", signature="sig"),
                Text(text="ok"),
                call("abcDEF123", path="ä"),
                call("abcDEF124"),
            ),
            result("abcDEF123", Text(text="there"), PICTURE),
            result("abcDEF124"),
        ),
        tools=(READ,),
        max_tokens=500,
    )
    assert request_body(request, MISTRAL) == SENT


def test_an_answer_of_thoughts_alone_is_left_out():
    request = replace(HELLO, messages=(user(Text(text="a")), said(Thinking(text="hm"))))
    body: Any = request_body(request, MISTRAL)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_every_id_of_a_call_becomes_nine_letters_or_digits_and_none_comes_twice():
    ids = ["call_0", "call_0", "x" * 300, "", "toolu_01|fc_2", "abcdefghi", "abcdefghi", "ä" * 9]
    messages: list[Any] = []
    for number, each in enumerate(ids):
        messages += [said(call(each), model=f"m{number}"), result(each, Text(text=str(number)))]
    body: Any = request_body(replace(HELLO, messages=tuple(messages)), MISTRAL)
    asked = [made["id"] for message in body["messages"] for made in message.get("tool_calls") or ()]
    answered = [each["tool_call_id"] for each in body["messages"] if each["role"] == "tool"]
    assert len(asked) == len(set(asked)) == len(ids)
    assert answered == asked
    assert all(len(each) == 9 and each.isascii() and each.isalnum() for each in asked)
    assert "abcdefghi" in asked


@pytest.mark.parametrize(
    ("compat", "on", "off"),
    [
        ({}, {"prompt_mode": "reasoning"}, {}),
        (
            {"thinkingLevelMap": {"off": "none", "low": "high"}},
            {"reasoning_effort": "high"},
            {"reasoning_effort": "none"},
        ),
        (
            {"thinkingLevelMap": {"high": "high"}},
            {"reasoning_effort": "low"},
            {"reasoning_effort": "none"},
        ),
    ],
    ids=["mode", "mapped", "unmapped-level"],
)
def test_thinking_is_asked_for_by_degree_where_the_model_has_words_for_it(
    compat: dict[str, Any], on: dict[str, Any], off: dict[str, Any]
):
    facts = replace(MISTRAL, reasoning=True, compat=compat)
    for level, wanted in (("low", on), ("off", off)):
        body = request_body(replace(HELLO, thinking=level), facts)
        keys = {"prompt_mode", "reasoning_effort"}
        assert {key: value for key, value in body.items() if key in keys} == wanted


@pytest.mark.parametrize("path", ["", "/", "/v1"])
async def test_it_asks_its_address_and_names_the_session(path: str, pools: Pools):
    async with loopback(Reply(sse(*SCENES["words"]))) as server:
        model = model_at(server.url + path, API, pools())
        outcome = await ask(model, replace(HELLO, session="s1"))
    assert outcome.text == "Hello"
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == "Bearer sk-test-very-secret"
    assert asked.headers["x-affinity"] == "s1"


async def test_a_thought_goes_back_as_it_came(pools: Pools):
    events = [
        chunk(content=[thought("h", signature="sig")]),
        chunk(content=[thought("m"), {"type": "text", "text": "o"}]),
        chunk("stop", content="k"),
        "[DONE]",
    ]
    async with loopback(Reply(sse(*events))) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert outcome.message is not None
    assert outcome.message.content == (
        Thinking(text="hm", signature="sig"),
        Text(text="ok"),
    )
    facts = replace(MISTRAL, base_url=server.url)
    body: Any = request_body(replace(HELLO, messages=(outcome.message,)), facts)
    assert body["messages"][-1] == {
        "role": "assistant",
        "content": [thought("hm", signature="sig"), {"type": "text", "text": "ok"}],
    }


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"p": "abc", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def thought(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], **more}


SCENES: dict[Scene, list[Any]] = {
    "words": [
        chunk(role="assistant", content=""),
        chunk(content="Hel"),
        chunk("stop", content="lo") | {"usage": USAGE},
        "[DONE]",
    ],
    "everything": [
        chunk(role="assistant", content=""),
        chunk(content=[thought("h")]),
        chunk(content=[thought("m", closed=True)]),
        chunk(content="Hello"),
        chunk(
            "tool_calls",
            content="",
            tool_calls=[
                {"id": "c1", "function": {"name": "read", "arguments": '{"path":"a"}'}},
                {"id": "c2", "function": {"name": "ls", "arguments": "{}"}},
            ],
        ),
        "[DONE]",
    ],
    "cut": [chunk(content="Hel")],
    "held": [chunk(content="Hel")],
}


def staged(pools: Pools) -> Stage:
    @asynccontextmanager
    async def stage(scene: Scene) -> AsyncGenerator[Staged]:
        reply = Reply([REFUSAL], status=429)
        if scene != "refused":
            hold = [anyio.Event()] if scene == "held" else []
            reply = Reply([*sse(*SCENES[scene]), *hold])
        async with loopback(reply) as server:
            yield Staged(model=model_at(server.url, API, pools()), left=server.gone.is_set)

    return stage


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_promise(check: Callable[[Stage], Any], pools: Pools):
    await check(staged(pools))
