"""How a request is sent, watched and ended, seen from a provider on the loopback device."""

import gc
from typing import Any

import anyio
import pytest

from agent_core.kernel.errors import ProviderError
from agent_core.messages import AssistantMessage, Text, Usage
from agent_core.providers import StreamFinished, TextDelta, UsageUpdate, WireApi
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import HELLO, ask, model_at


def chunk(text: str | None = None, *, finish: str | None = None) -> dict[str, object]:
    delta = {} if text is None else {"content": text}
    return {"id": "r1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
}
WHOLE = sse(chunk("Hel"), chunk("lo"), chunk(finish="stop"), USAGE, "[DONE]")
API = "openai-completions"


async def test_an_answer_comes_in_parts_and_then_whole(pools: Pools):
    async with loopback(Reply(WHOLE)) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert outcome.error is None
    assert outcome.message is not None
    assert outcome.message == AssistantMessage(
        content=(Text(text="Hello"),),
        api=API,
        provider="lab",
        model="m",
        stop_reason="stop",
        usage=Usage(input=10, output=2),
        raw_stop_reason="stop",
        response_id="r1",
        at_ms=outcome.message.at_ms,
    )


async def test_what_comes_at_once_is_given_as_one_part(pools: Pools):
    words = [chunk(f"word{n} ") for n in range(500)]
    glued = b"".join(sse(*words, chunk(finish="stop"), USAGE, "[DONE]"))
    async with loopback(Reply([glued])) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert [part for part in outcome.parts if not isinstance(part, UsageUpdate)] == [
        TextDelta(text="".join(f"word{n} " for n in range(500)))
    ]


async def test_the_connection_serves_the_next_request(pools: Pools):
    async with loopback(Reply(WHOLE), Reply(WHOLE), Reply(WHOLE)) as server:
        connections = pools()
        model = model_at(server.url, API, connections)
        for _ in range(3):
            assert (await ask(model)).error is None
        assert [asked.connection for asked in server.asked] == [1, 1, 1]


async def test_a_connection_that_the_provider_gave_up_is_tried_once_more(pools: Pools):
    async with loopback(Reply(silent=True), Reply(WHOLE)) as server:
        outcome = await ask(model_at(server.url, API, pools()))
        assert outcome.text == "Hello"
        assert len(server.asked) == 2


async def test_it_is_tried_once_more_and_no_more(pools: Pools):
    async with loopback(Reply(silent=True), Reply(silent=True), Reply(WHOLE)) as server:
        outcome = await ask(model_at(server.url, API, pools()))
        assert outcome.error is not None
        assert (outcome.error.reason, outcome.error.before_first_byte) == ("network", True)
        assert len(server.asked) == 2


async def test_an_error_status_is_not_tried_again(pools: Pools):
    body = b'{"error":{"message":"overloaded","type":"overloaded_error"}}'
    async with loopback(Reply([body], status=529)) as server:
        outcome = await ask(model_at(server.url, API, pools()))
        assert outcome.error is not None
        assert (outcome.error.reason, outcome.error.status) == ("server", 529)
        assert len(server.asked) == 1


async def test_nobody_listening_is_a_network_error(pools: Pools):
    async with loopback() as server:
        url = server.url
    outcome = await ask(model_at(url, API, pools()))
    assert outcome.error is not None
    assert outcome.error.reason == "network"
    assert str(outcome.error).startswith("cannot reach lab: ")


async def test_silence_before_the_first_byte_has_its_own_limit(pools: Pools):
    async with loopback(Reply([anyio.Event()])) as server:
        model = model_at(server.url, API, pools(first_byte_s=0.2, idle_s=10))
        outcome = await ask(model)
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.before_first_byte) == ("timeout", True)
    assert "sent nothing for 0.2 s" in str(outcome.error)


async def test_silence_in_the_middle_keeps_what_came(pools: Pools):
    async with loopback(Reply([*sse(chunk("Hel")), anyio.Event()])) as server:
        outcome = await ask(model_at(server.url, API, pools(first_byte_s=10, idle_s=0.2)))
    assert outcome.text == "Hel"
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.before_first_byte) == ("timeout", False)


async def test_comments_are_life(pools: Pools):
    gates = [anyio.Event() for _ in range(6)]
    steps: list[bytes | anyio.Event] = [*sse(chunk("Hel"))]
    for gate in gates:
        steps += [gate, b": ping\n\n"]
    async with loopback(Reply([*steps, *WHOLE[1:]])) as server, anyio.create_task_group() as tasks:

        async def pace() -> None:
            for gate in gates:
                await anyio.sleep(0.1)
                gate.set()

        tasks.start_soon(pace)
        outcome = await ask(model_at(server.url, API, pools(idle_s=0.4)))
        assert outcome.error is None
        assert outcome.text == "Hello"


async def test_a_slow_reader_is_no_silence_of_the_provider(pools: Pools):
    async with loopback(Reply(WHOLE)) as server:
        model = model_at(server.url, API, pools(idle_s=0.1))
        async with model.stream(HELLO) as parts:
            got = []
            async for part in parts:
                got.append(part)
                await anyio.sleep(0.25)
    assert isinstance(got[-1], StreamFinished)


async def test_leaving_closes_the_connection(pools: Pools):
    async with loopback(Reply([*sse(chunk("Hel")), anyio.Event()])) as server:
        async with model_at(server.url, API, pools()).stream(HELLO) as parts:
            assert await anext(parts) == TextDelta(text="Hel")
        with anyio.fail_after(1):
            await server.gone.wait()


@pytest.mark.parametrize(
    "steps", [[anyio.Event], [sse(chunk("Hel"))[0], anyio.Event]], ids=["before", "amid"]
)
async def test_cancelling_closes_the_connection(steps: list[Any], pools: Pools):
    made = [step() if isinstance(step, type) else step for step in steps]
    async with loopback(Reply(made)) as server:
        with anyio.fail_after(2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, model_at(server.url, API, pools()))
                await server.was_asked.wait()
                tasks.cancel_scope.cancel()
            await server.gone.wait()
    gc.collect()


async def test_an_error_in_the_caller_goes_up_as_it_is(pools: Pools):
    async with loopback(Reply([*sse(chunk("Hel")), anyio.Event()])) as server:
        stream = model_at(server.url, API, pools()).stream(HELLO)
        with pytest.raises(LookupError, match="mine"):  # noqa: PT012 - raised inside on purpose
            async with stream as parts:
                await anext(parts)
                raise LookupError("mine")


async def test_a_key_that_the_provider_echoes_does_not_show(pools: Pools):
    body = b'{"error":{"message":"bad key sk-test-very-secret","type":"authentication_error"}}'
    async with loopback(Reply([body], status=401)) as server:
        outcome = await ask(model_at(server.url, API, pools()))
        assert server.asked[0].headers["authorization"] == "Bearer sk-test-very-secret"
    assert (
        str(outcome.error)
        == "lab answered 401: bad key [redacted:secret]; check the key, or sign in again (tiller auth status)"
    )


async def test_a_key_that_an_event_echoes_does_not_show(pools: Pools):
    events = sse(chunk("a"), {"error": {"message": "bad sk-test-very-secret", "code": 401}})
    async with loopback(Reply(events)) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert outcome.error is not None
    assert (
        str(outcome.error)
        == "lab broke off: bad [redacted:secret]; check the key, or sign in again (tiller auth status)"
    )
    assert (outcome.error.reason, outcome.error.status) == ("auth", 401)


@pytest.mark.parametrize(
    ("body", "reason", "text"),
    [
        (b"", "protocol", "lab/m sent an empty stream; try again"),
        (
            b": hello\n\n",
            "protocol",
            "lab/m ended its stream before the answer was whole; try again",
        ),
        (b"data: {oops\n\n", "protocol", "lab/m sent an event that is not JSON"),
        (
            b'{"error":"The number of tokens to keep is greater than the context length"}',
            "context_overflow",
            "lab answered 200: The number of tokens to keep",
        ),
        (b'{"choices":[]}', "protocol", "lab/m answered with JSON that is no answer"),
        (b'{"choices":[{"mes', "protocol", "lab/m sent JSON that is not whole"),
        (b'\xef\xbb\xbf \r\n{"error":{"message":"no"}}', "server", "lab answered 200: no"),
        (
            b"\r\n <!doctype html><p>Log in</p>",
            "protocol",
            "lab answered with a web page; check its base URL (baseUrl in models.json)",
        ),
    ],
    ids=[
        "empty",
        "comments",
        "garbage",
        "json-error",
        "json-answer",
        "json-cut",
        "json-behind-blanks",
        "html",
    ],
)
async def test_a_200_that_is_no_answer_is_an_error(
    body: bytes, reason: str, text: str, pools: Pools
):
    steps = [body] if body else []
    async with loopback(Reply(steps)) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert outcome.error is not None
    assert outcome.error.reason == reason
    assert str(outcome.error).startswith(text)


async def test_an_answer_that_has_its_end_does_not_wait_for_the_connection(pools: Pools):
    """A server that keeps the connection open behind its last event costs the answer nothing."""
    async with loopback(Reply([*WHOLE, anyio.Event()])) as server:
        with anyio.fail_after(2):
            outcome = await ask(model_at(server.url, API, pools()))
    assert outcome.text == "Hello"


HELD_OPEN: dict[WireApi, list[Any]] = {
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.added", "item": {"type": "message", "id": "m"}},
        {"type": "response.output_text.delta", "delta": "Hello"},
        {
            "type": "response.completed",
            "response": {"status": "completed", "usage": {"input_tokens": 10, "output_tokens": 2}},
        },
    ],
    "openai-completions": [chunk("Hello"), chunk(finish="stop"), USAGE],
}


@pytest.mark.parametrize("api", HELD_OPEN)
async def test_an_end_without_a_closing_mark_is_not_waited_upon_for_long(
    api: WireApi, pools: Pools
):
    async with loopback(Reply([*sse(*HELD_OPEN[api]), anyio.Event()])) as server:
        with anyio.fail_after(3):
            outcome = await ask(model_at(server.url, api, pools()))
    assert outcome.error is None
    assert outcome.text == "Hello"
    assert outcome.message is not None
    assert outcome.message.usage == Usage(input=10, output=2)


async def test_a_usage_that_comes_late_is_waited_for(pools: Pools):
    async def soon() -> None:
        await anyio.sleep(0.8)
        late.set()

    late = anyio.Event()
    ends = [*sse(chunk("Hello"), chunk(finish="stop")), late, *sse(USAGE, "[DONE]")]
    async with loopback(Reply(ends)) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(soon)
        outcome = await ask(model_at(server.url, API, pools()))
        assert outcome.message is not None
        assert outcome.message.usage == Usage(input=10, output=2)


async def test_an_address_that_is_none_is_told_at_once(pools: Pools):
    outcome = await ask(model_at("nonsense", API, pools()))
    assert outcome.error is not None
    assert outcome.error.reason == "invalid_request"


async def test_a_redirect_is_not_followed(pools: Pools):
    reply = Reply(status=302, headers={"location": "http://127.0.0.1:1/elsewhere"})
    async with loopback(reply) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert isinstance(outcome.error, ProviderError)
    assert outcome.error.status == 302
