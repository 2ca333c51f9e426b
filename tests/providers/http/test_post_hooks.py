"""What hooks see of a request in a provider's own form, and what they change in it."""

import pytest

from agent_core.hooks import (
    HeadersBuilt,
    HeadersChanged,
    HookRunner,
    PayloadBuilt,
    PayloadReplaced,
    ResponseArrived,
)
from agent_core.providers import WireApi
from agent_core.providers.http.client import HttpPool, changed_by_hooks
from agent_core.providers.http.request import HttpRequest
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback, sse
from tests.providers.replay import ask, model_at
from tests.support.hooks.hook_functions import runner
from tests.support.hooks.hook_listener import Listener

WHOLE = sse(
    {"id": "r1", "choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
    "[DONE]",
)
API: WireApi = "openai-completions"


def heard(listener: Listener, connections: HttpPool) -> HttpPool:
    connections.hooks, _ = runner(listener.table)
    return connections


async def test_hooks_change_what_is_sent(pools: Pools) -> None:
    listener = Listener(
        says={
            PayloadBuilt: PayloadReplaced(payload={"model": "other", "stream": True}),
            HeadersBuilt: HeadersChanged(headers={"X-Team": "red", "Accept": None}),
        }
    )
    async with loopback(Reply(WHOLE)) as server:
        outcome = await ask(model_at(server.url, API, heard(listener, pools())))
        (asked,) = server.asked
    assert outcome.error is None
    assert asked.body == {"model": "other", "stream": True}
    assert asked.headers["x-team"] == "red"
    assert asked.headers.get("accept") != "text/event-stream"
    built = listener.one(PayloadBuilt)
    assert (built.provider, built.url) == ("lab", f"{server.url}/chat/completions")
    assert built.payload["model"] == "m"


async def test_hooks_are_told_of_the_answer(pools: Pools) -> None:
    listener = Listener()
    async with loopback(Reply(WHOLE), Reply([b"{}"], status=429)) as server:
        model = model_at(server.url, API, heard(listener, pools()))
        await ask(model)
        await ask(model)
    assert [one.status for one in listener.of(ResponseArrived)] == [200, 429]
    assert {one.provider for one in listener.of(ResponseArrived)} == {"lab"}


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer x"},
        {"X-Api-Key": "x"},
        {"x-own": "a key: s3cret-s3cret"},
    ],
    ids=["bearer", "a key's header", "a secret"],
)
async def test_hooks_see_no_keys(headers: dict[str, str]) -> None:
    listener = Listener(says={HeadersBuilt: HeadersChanged(headers={"x-more": "1"})})
    hooks: HookRunner = runner(listener.table)[0]
    post = HttpRequest(
        provider="lab",
        url="http://lab",
        headers={**headers, "accept": "json"},
        body=b"{}",
        secrets=("s3cret-s3cret",),
    )
    sent = await changed_by_hooks(post, hooks)
    assert listener.one(HeadersBuilt).headers == {"accept": "json"}
    assert sent.headers == {**headers, "accept": "json", "x-more": "1"}


async def test_what_is_signed_is_not_changed() -> None:
    listener = Listener()
    post = HttpRequest(provider="bedrock", url="http://aws", headers={}, body=b"{}", signed=True)
    assert await changed_by_hooks(post, runner(listener.table)[0]) is post
    assert listener.heard == []
