"""Every implementation of a model keeps the promises of the port."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest

from agent_core.kernel.errors import ProviderError
from agent_core.messages import Usage
from agent_core.providers import TextDelta, WireApi
from tests.providers import aws_frames
from tests.providers.conformance import CHECKS, Scene, Stage, Staged, staged_always
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import PROJECT, ask, model_at
from tests.support.session.scripted_model import Gate, ScriptedModel, both, call, say, think

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
REFUSAL = b'{"error":{"type":"rate_limit_error","message":"slow down"}}'


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def called(index: int, **more: Any) -> dict[str, Any]:
    return chunk(tool_calls=[{"index": index, **more}])


OPENAI: dict[Scene, list[Any]] = {
    "words": [chunk(content="Hel"), chunk(content="lo"), chunk("stop"), {"usage": USAGE}, "[DONE]"],
    "everything": [
        chunk(reasoning_content="hm"),
        chunk(content="Hello"),
        called(0, id="c1", function={"name": "read", "arguments": ""}),
        called(0, function={"arguments": '{"pa'}),
        called(0, function={"arguments": 'th":"a"}'}),
        called(1, id="c2", function={"name": "ls", "arguments": ""}),
        chunk("tool_calls"),
        "[DONE]",
    ],
    "cut": [chunk(content="Hel")],
    "held": [chunk(content="Hel")],
}


def block(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **more}}


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def ended(reason: str) -> list[Any]:
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason},
            "usage": {"input_tokens": 10, "output_tokens": 5},
        },
        {"type": "message_stop"},
    ]


BEGUN = {
    "type": "message_start",
    "message": {"id": "msg", "usage": {"input_tokens": 10, "output_tokens": 1}},
}
ANTHROPIC: dict[Scene, list[Any]] = {
    "words": [
        BEGUN,
        block(0, "text", text=""),
        delta(0, "text_delta", text="Hel"),
        delta(0, "text_delta", text="lo"),
        *ended("end_turn"),
    ],
    "everything": [
        BEGUN,
        block(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="sig"),
        block(1, "text", text="Hello"),
        block(2, "tool_use", id="c1", name="read", input={}),
        delta(2, "input_json_delta", partial_json='{"pa'),
        delta(2, "input_json_delta", partial_json='th":"a"}'),
        block(3, "tool_use", id="c2", name="ls", input={}),
        delta(3, "input_json_delta", partial_json=""),
        *ended("tool_use"),
    ],
    "cut": [BEGUN, block(0, "text", text=""), delta(0, "text_delta", text="Hel")],
    "held": [BEGUN, block(0, "text", text=""), delta(0, "text_delta", text="Hel")],
}


def candidate(*parts: Any, finish: str | None = None) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": finish}]}


COUNTED = {
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
}
GEMINI: dict[Scene, list[Any]] = {
    "words": [
        candidate({"text": "Hel"}),
        candidate({"text": "lo"}),
        candidate(finish="STOP") | COUNTED,
    ],
    "everything": [
        candidate({"text": "hm", "thought": True}),
        candidate({"text": "Hello"}),
        candidate({"functionCall": {"id": "c1", "name": "read", "args": {"path": "a"}}}),
        candidate({"functionCall": {"id": "c2", "name": "ls"}}, finish="STOP"),
    ],
    "cut": [candidate({"text": "Hel"})],
    "held": [candidate({"text": "Hel"})],
}
CONVERSE: dict[Scene, list[Any]] = {
    "words": [
        aws_frames.delta(0, text="Hel"),
        aws_frames.delta(0, text="lo"),
        *aws_frames.ended("end_turn"),
    ],
    "everything": [
        aws_frames.delta(0, reasoningContent={"text": "hm"}),
        aws_frames.delta(1, text="Hello"),
        aws_frames.called(2, "read", "c1"),
        aws_frames.delta(2, toolUse={"input": '{"pa'}),
        aws_frames.delta(2, toolUse={"input": 'th":"a"}'}),
        aws_frames.called(3, "ls", "c2"),
        *aws_frames.ended("tool_use"),
    ],
    "cut": [aws_frames.delta(0, text="Hel")],
    "held": [aws_frames.delta(0, text="Hel")],
}


def over_http(
    api: WireApi,
    scenes: dict[Scene, list[Any]],
    *,
    written: Callable[..., list[bytes]] = sse,
    facts: Mapping[str, Any] | None = None,
) -> Callable[[Pools], Stage]:
    def made(pools: Pools) -> Stage:
        @asynccontextmanager
        async def stage(scene: Scene) -> AsyncGenerator[Staged]:
            reply = Reply([REFUSAL], status=429)
            if scene != "refused":
                hold = [anyio.Event()] if scene == "held" else []
                reply = Reply([*written(*scenes[scene]), *hold])
            async with loopback(reply) as server:
                model = model_at(server.url, api, pools(), **(facts or {}))
                yield Staged(model=model, left=server.gone.is_set)

        return stage

    return made


def as_they_are(*frames: bytes) -> list[bytes]:
    return list(frames)


def scripted(_: Pools) -> Stage:
    def stage(scene: Scene) -> AbstractAsyncContextManager[Staged]:
        read = call("read", {"path": "a"})
        match scene:
            case "words":
                model = ScriptedModel([say("Hel", "lo", usage=Usage(input=10, output=5))])
            case "everything":
                model = ScriptedModel([both(think("hm"), "Hello", read, call("ls", id="c2"))])
            case "cut":
                model = ScriptedModel([[TextDelta(text="Hel")]])
            case "held":
                model = ScriptedModel([[TextDelta(text="Hel"), Gate()]])
            case "refused":
                model = ScriptedModel([refusal()])
        return staged_always(model, left=lambda: model.open_streams == 0)

    return stage


def refusal() -> ProviderError:
    return ProviderError(
        "slow down", reason="rate_limit", provider="scripted", before_first_byte=True
    )


LONE = "\ud800"


def with_half(event: Any, half: str) -> Any:
    """Replace the path in an event: in arguments that are text by a text, in an object by what it means."""
    match event:
        case 'th":"a"}':
            return f'th":"{half}/x"}}'
        case {"path": "a"}:
            return {"path": f"{LONE}/x"}
        case dict():
            return {key: with_half(value, half) for key, value in event.items()}
        case list():
            return [with_half(value, half) for value in event]
        case _:
            return event


MODELS = {
    "openai-completions": over_http("openai-completions", OPENAI),
    "anthropic-messages": over_http("anthropic-messages", ANTHROPIC),
    "google-generative-ai": over_http("google-generative-ai", GEMINI),
    "google-vertex": over_http("google-vertex", GEMINI, facts=PROJECT),
    "google-vertex-claude": over_http(
        "google-vertex", ANTHROPIC, facts={"id": "claude-m", **PROJECT}
    ),
    "bedrock-converse-stream": over_http("bedrock-converse-stream", CONVERSE, written=as_they_are),
    "scripted": scripted,
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("model", MODELS)
async def test_it_keeps_the_promise(model: str, check: Callable[[Stage], Any], pools: Pools):
    await check(MODELS[model](pools))


@pytest.mark.parametrize(
    "half", ["\\ud800", LONE], ids=["escaped in the text", "escaped in the event"]
)
@pytest.mark.parametrize(
    ("api", "events"),
    [
        ("openai-completions", OPENAI["everything"]),
        ("anthropic-messages", ANTHROPIC["everything"]),
        ("google-generative-ai", GEMINI["everything"]),
        ("bedrock-converse-stream", None),
    ],
)
async def test_half_a_character_in_arguments_is_never_replaced(
    api: WireApi, events: list[Any] | None, half: str, pools: Pools
):
    """U+FFFD in its place would be another name than the model wrote."""
    if events is None:
        pieces = [
            aws_frames.called(2, "read", "c1"),
            aws_frames.delta(2, toolUse={"input": f'{{"path":"{half}/x"}}'}),
            aws_frames.called(3, "ls", "c2"),
            *aws_frames.ended("tool_use"),
        ]
    else:
        pieces = sse(*with_half(events, half))
    async with loopback(Reply(pieces)) as server:
        outcome = await ask(model_at(server.url, api, pools()))
    assert outcome.message is not None
    read, listed = outcome.message.tool_calls
    assert read.arguments == {}
    assert "half of a character" in str(read.arguments_error)
    assert (listed.arguments, listed.arguments_error) == ({}, None)


async def test_half_a_character_in_words_is_replaced(pools: Pools):
    events = [chunk(content=f"a{LONE}b"), *OPENAI["everything"][2:]]
    async with loopback(Reply(sse(*events))) as server:
        outcome = await ask(model_at(server.url, "openai-completions", pools()))
    assert outcome.message is not None
    assert outcome.message.text == "a\ufffdb"
    assert outcome.message.tool_calls[0].arguments == {"path": "a"}
