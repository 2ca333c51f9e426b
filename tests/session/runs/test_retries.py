"""Model calls that fail: what is tried again, how long is waited, what the user is told."""

from typing import Any

from agent_core.events import (
    RetryStarted,
    RunEnded,
)
from agent_core.kernel.errors import (
    ProviderError,
)
from agent_core.messages import UserMessage
from agent_core.session.context import SessionOptions
from agent_core.session.runs.retry_policy import RetryOptions
from tests.support.session.scripted_model import ScriptedModel, say
from tests.support.session.sessions import bench


def server_error(**more: Any) -> ProviderError:
    return ProviderError("the provider is down", reason="server", provider="scripted", **more)


async def test_a_failing_call_is_retried_with_growing_delays_and_the_user_is_told() -> None:
    model = ScriptedModel([server_error(), server_error(), say("at last")])
    async with bench(model) as b:
        await b.session.prompt("go")
        events = await b.idle()
        started = [e for e in events if isinstance(e, RetryStarted)]
        assert [e.attempt for e in started] == [1, 2]
        first, second = b.slept
        assert 1.6 <= first <= 2.4
        assert 3.2 <= second <= 4.8
        assert "retry.ended" in b.names()
        assert len([m for m in b.messages if isinstance(m, UserMessage)]) == 1


async def test_retry_after_of_the_provider_wins() -> None:
    model = ScriptedModel([server_error(retry_after_s=7.0), say("ok")])
    async with bench(model) as b:
        await b.session.prompt("go")
        await b.idle()
        assert b.slept == [7.0]


async def test_a_longer_wait_than_allowed_ends_the_run_and_names_the_time() -> None:
    error = ProviderError("wait", reason="rate_limit", provider="p", retry_after_s=600.0)
    async with bench(ScriptedModel([error])) as b:
        await b.session.prompt("go")
        events = await b.idle()
        ended = next(e for e in events if isinstance(e, RunEnded))
        assert ended.status == "failed"
        assert ended.error is not None
        assert (ended.error.kind, ended.error.retry_after_ms) == ("RateLimited", 600_000)


async def test_retries_are_bounded() -> None:
    model = ScriptedModel([server_error()] * 4)
    options = SessionOptions(retry=RetryOptions(max_retries=3))
    async with bench(model, options=options) as b:
        await b.session.prompt("go")
        events = await b.idle()
        assert len(b.slept) == 3
        assert next(e for e in events if isinstance(e, RunEnded)).status == "failed"


async def test_a_wrong_key_is_neither_retried_nor_compacted() -> None:
    error = ProviderError("invalid x-api-key", reason="auth", provider="p", status=401)
    async with bench(ScriptedModel([error])) as b:
        await b.session.prompt("go")
        events = await b.idle()
        assert b.slept == []
        assert "compaction.started" not in b.names()
        ended = next(e for e in events if isinstance(e, RunEnded))
        assert ended.error is not None
        assert ended.error.kind == "AuthRequired"


async def test_after_a_failed_run_the_session_can_go_on() -> None:
    error = ProviderError("no", reason="invalid_request", provider="p", status=400)
    async with bench(ScriptedModel([error, say("fine")])) as b:
        await b.session.prompt("go")
        await b.idle()
        await b.session.prompt("again")
        await b.idle()
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["failed", "completed"]


async def test_a_refused_thought_is_left_out_once_and_the_run_goes_on() -> None:
    refused = ProviderError(
        "messages.1: a final assistant message must start with a thinking block",
        reason="invalid_request",
        provider="p",
        status=400,
    )
    model = ScriptedModel([refused, say("on we go")])
    async with bench(model) as b:
        await b.session.prompt("go")
        events = await b.idle()
        assert [request.without_thoughts for request in model.requests] == [False, True]
        assert "compaction.started" not in b.names()
        assert b.slept == []
        assert next(e for e in events if isinstance(e, RunEnded)).status == "completed"


async def test_a_thought_refused_twice_ends_the_run() -> None:
    refused = ProviderError(
        "invalid signature in thinking block", reason="invalid_request", provider="p", status=400
    )
    async with bench(ScriptedModel([refused, refused])) as b:
        await b.session.prompt("go")
        events = await b.idle()
        assert next(e for e in events if isinstance(e, RunEnded)).status == "failed"
