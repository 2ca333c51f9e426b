"""A model behind the Responses API, asked over HTTP."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from agent_core.providers import ModelRequest
from agent_core.providers.adapters.openai_responses import OpenAIResponses
from tests.providers.conformance import CHECKS, Scene, Stage, Staged
from tests.providers.conftest import Pools
from tests.providers.loopback import Loopback, Reply, loopback, sse
from tests.providers.replay import HELLO, OpenDoor, Outcome, ask
from tests.providers.wire.responses_events import (
    FACTS,
    arguments,
    ended,
    failed,
    item,
    said,
    summary,
    whole,
    words,
)

COUNTS = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
SCENES: dict[Scene, list[Any]] = {
    "words": [words("Hel"), words("lo"), ended(usage=COUNTS)],
    "everything": [
        item("reasoning", 0, summary=[]),
        summary("hm", 0),
        item("message", 1, content=[]),
        words("Hello", 1),
        whole("message", 1, content=said("Hello")),
        item("function_call", 2, call_id="c1", name="read", arguments=""),
        arguments('{"pa', 2),
        arguments('th":"a"}', 2),
        whole("function_call", 2, call_id="c1", name="read", arguments='{"path":"a"}'),
        item("function_call", 3, call_id="c2", name="ls", arguments=""),
        whole("function_call", 3, call_id="c2", name="ls", arguments=""),
        ended(),
    ],
    "cut": [words("Hel")],
    "held": [words("Hel")],
}
REFUSAL = b'{"error":{"type":"rate_limit_error","message":"slow down"}}'


def model_of(server: Loopback, pools: Pools) -> OpenAIResponses:
    facts = replace(FACTS, base_url=f"{server.url}/v1/")
    return OpenAIResponses(facts, access=OpenDoor(), pool=pools())


async def asked(pools: Pools, *events: Any) -> Outcome:
    async with loopback(Reply(sse(*events))) as server:
        return await ask(model_of(server, pools))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_promises_of_a_model(check: Callable[[Stage], Any], pools: Pools):
    @asynccontextmanager
    async def stage(scene: Scene) -> AsyncGenerator[Staged]:
        reply = Reply([REFUSAL], status=429)
        if scene != "refused":
            hold = [anyio.Event()] if scene == "held" else []
            reply = Reply([*sse(*SCENES[scene]), *hold])
        async with loopback(reply) as server:
            yield Staged(model=model_of(server, pools), left=server.gone.is_set)

    await check(stage)


async def test_it_is_asked_at_its_address_with_its_key_and_session(pools: Pools):
    request: ModelRequest = replace(HELLO, session="s")
    async with loopback(Reply(sse(words("Hello"), ended()))) as server:
        model = model_of(server, pools)
        compat = {"sendSessionIdHeader": True}
        told = OpenAIResponses(replace(model.facts, compat=compat), access=OpenDoor(), pool=pools())
        outcome = await ask(told, request)
    assert outcome.message is not None
    (sent,) = server.asked
    assert sent.path == "/v1/responses"
    assert sent.headers["authorization"] == "Bearer sk-test-very-secret"
    assert sent.headers["session_id"] == "s"
    assert sent.body["model"] == "m"


async def test_the_first_error_of_a_stream_is_the_one_that_counts(pools: Pools):
    quota = {"type": "error", "code": "insufficient_quota", "message": "No money"}
    outcome = await asked(pools, quota, failed(code="server_error", message="Sorry"))
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.before_first_byte) == ("quota", True)


async def test_comments_and_the_closing_mark_of_a_gateway_are_taken(pools: Pools):
    steps = [b": PROCESSING\n\n", *sse(words("Hello"), ended(), "[DONE]")]
    async with loopback(Reply(steps)) as server:
        outcome = await ask(model_of(server, pools))
    assert outcome.message is not None
    assert outcome.message.text == "Hello"


async def test_no_secret_stands_in_an_error(pools: Pools):
    outcome = await asked(pools, failed(code="x", message="your key sk-test-very-secret is odd"))
    assert outcome.error is not None
    assert "very-secret" not in str(outcome.error)
