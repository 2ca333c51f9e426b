"""Bedrock: what its events and its refusals mean."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from agent_core.kernel import ToolCallId
from agent_core.messages import Text, Thinking, ToolCall, Usage
from agent_core.providers.adapters.bedrock_converse import BedrockConverse
from tests.providers.aws_frames import called, delta, ended, event, exception
from tests.providers.conftest import Pools
from tests.providers.loopback import Loopback, Reply, loopback
from tests.providers.replay import LAB, OpenDoor, Outcome, ask

CLAUDE = replace(LAB, api="bedrock-converse-stream", id="anthropic.claude-sonnet-4-5-v1:0")


def model_for(server: Loopback, pools: Pools, **more: Any) -> BedrockConverse:
    facts = replace(CLAUDE, base_url=server.url)
    options: dict[str, Any] = {"access": OpenDoor(), "pool": pools(), **more}
    return BedrockConverse(facts, **options)


async def heard(pools: Pools, *frames: bytes) -> Outcome:
    async with loopback(Reply(frames)) as server:
        return await ask(model_for(server, pools))


async def test_blocks_need_no_announcement_and_keep_their_order(pools: Pools):
    outcome = await heard(
        pools,
        event("messageStart", role="assistant"),
        delta(0, reasoningContent={"text": "h"}),
        delta(0, reasoningContent={"text": "m"}),
        delta(0, reasoningContent={"signature": "sig"}),
        delta(1, reasoningContent={"redactedContent": "ZW5j"}),
        delta(2, citation={"title": "of no use"}),
        delta(2, text="Hel"),
        delta(2, text="lo"),
        called(3, "read", "t1"),
        delta(3, toolUse={"input": '{"pa'}),
        delta(3, toolUse={"input": 'th": "a"}'}),
        event("contentBlockStop", contentBlockIndex=3),
        called(4, "ls", "t2"),
        event("ofTheFuture", a=1),
        *ended("tool_use", inputTokens=7, outputTokens=9, cacheReadInputTokens=3),
    )
    assert outcome.message is not None
    assert outcome.message.content == (
        Thinking(text="hm", signature="sig"),
        Thinking(text="", signature="ZW5j", redacted=True),
        Text(text="Hello"),
        ToolCall(id=ToolCallId("t1"), name="read", arguments={"path": "a"}),
        ToolCall(id=ToolCallId("t2"), name="ls", arguments={}),
    )
    assert outcome.message.usage == Usage(input=7, output=9, cache_read=3)
    assert outcome.message.stop_reason == "tool_use"
    assert (outcome.thinking, outcome.text) == ("hm", "Hello")


async def test_what_the_providers_own_tools_gave_is_not_for_us(pools: Pools):
    start = {"toolResult": {"toolUseId": "t", "status": "success"}}
    outcome = await heard(
        pools,
        event("contentBlockStart", contentBlockIndex=0, start=start),
        delta(0, toolResult=[{"text": "hidden"}]),
        delta(0, text="hidden too"),
        delta(1, text="found"),
        *ended("end_turn"),
    )
    assert outcome.message is not None
    assert outcome.message.content == (Text(text="found"),)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "stop"),
    ],
)
async def test_an_end_is_told_in_our_words(reason: str, stop: str, pools: Pools):
    outcome = await heard(pools, delta(0, text="a"), *ended(reason))
    assert outcome.message is not None
    assert (outcome.message.stop_reason, outcome.message.raw_stop_reason) == (stop, reason)


@pytest.mark.parametrize(
    ("reason", "words", "kind"),
    [
        ("content_filtered", "a", "refused"),
        ("guardrail_intervened", "", "refused"),
        ("model_context_window_exceeded", "", "context_overflow"),
        ("malformed_tool_use", "a", "server"),
        ("of the future", "a", "server"),
    ],
)
async def test_a_bad_end_is_an_error(reason: str, words: str, kind: str, pools: Pools):
    outcome = await heard(pools, delta(0, text=words), *ended(reason))
    assert outcome.error is not None
    assert outcome.error.reason == kind
    assert reason in str(outcome.error)


async def test_an_answer_without_its_counts_is_whole(pools: Pools):
    outcome = await heard(pools, delta(0, text="a"), event("messageStop", stopReason="end_turn"))
    assert outcome.message is not None
    assert outcome.message.usage == Usage()


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("throttlingException", "Too many tokens, please wait before trying again.", "rate_limit"),
        ("validationException", "Input is too long for requested model.", "context_overflow"),
        ("validationException", "bad request", "invalid_request"),
        ("internalServerException", "oh", "server"),
        ("modelStreamErrorException", "oh", "server"),
        ("serviceUnavailableException", "oh", "server"),
        ("modelTimeoutException", "oh", "timeout"),
        ("unheardOfException", "oh", "server"),
    ],
)
async def test_an_exception_in_the_stream_is_an_error_of_its_kind(
    kind: str, text: str, reason: str, pools: Pools
):
    early = await heard(pools, exception(kind, text))
    late = await heard(pools, delta(0, text="a"), exception(kind, text))
    assert early.error is not None
    assert late.error is not None
    assert (early.error.reason, early.error.before_first_byte) == (reason, True)
    assert (late.error.reason, late.error.before_first_byte, late.text) == (reason, False, "a")


@pytest.mark.parametrize("lost", [1, 5, 200])
async def test_a_stream_that_ends_inside_a_frame_is_no_answer(lost: int, pools: Pools):
    sent = b"".join([delta(0, text="a"), *ended("end_turn")])
    outcome = await heard(pools, sent[:-lost])
    assert outcome.error is not None
    assert outcome.error.reason == "protocol"


async def test_a_damaged_frame_is_no_answer(pools: Pools):
    sent = bytearray(delta(0, text="a"))
    sent[-10] ^= 1
    outcome = await heard(pools, bytes(sent), *ended("end_turn"))
    assert outcome.error is not None
    assert outcome.error.reason == "protocol"


@pytest.mark.parametrize(
    ("status", "named", "text", "reason"),
    [
        (429, "ThrottlingException", "Too many tokens, please wait", "rate_limit"),
        (400, "ThrottlingException:http://x", "Too many tokens, please wait", "rate_limit"),
        (400, "ValidationException", "Input is too long for requested model.", "context_overflow"),
        (403, "UnrecognizedClientException", "The security token is invalid.", "auth"),
        (503, "ServiceUnavailableException", "oh", "server"),
        (424, "ModelErrorException", "oh", "server"),
        (404, "ResourceNotFoundException", "oh", "not_found"),
    ],
)
async def test_a_refusal_is_of_its_class(
    status: int, named: str, text: str, reason: str, pools: Pools
):
    reply = Reply(
        [b'{"message": "%s"}' % text.encode()], status=status, headers={"x-amzn-errortype": named}
    )
    async with loopback(reply) as server:
        outcome = await ask(model_for(server, pools))
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.status) == (reason, status)


async def test_a_bearer_token_needs_no_signature(pools: Pools):
    async with loopback(Reply([delta(0, text="a"), *ended("end_turn")])) as server:
        outcome = await ask(model_for(server, pools))
        (asked,) = server.asked
    assert outcome.error is None
    assert asked.path == f"/model/{quote(CLAUDE.id, safe='')}/converse-stream"
    assert asked.headers["authorization"] == "Bearer sk-test-very-secret"
    assert "x-amz-date" not in asked.headers
