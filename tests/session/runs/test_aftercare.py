"""What follows a run's turns, as a table."""

from typing import Any, cast

import pytest

from agent_core.kernel.errors import ProviderError, ProviderErrorKind
from agent_core.messages import StopReason
from agent_core.session.runs.retry_policy import (
    JITTER,
    AttemptFailed,
    AttemptOutcome,
    CompactAndContinue,
    CompactAndStop,
    Finished,
    NextAction,
    RetryAfter,
    RetryOptions,
    RetryWithoutThinking,
    StopRun,
    draw_jitter,
    next_action,
)
from tests.support.session.entries import assistant

SETTINGS = RetryOptions(max_retries=3, base_delay_ms=2_000, max_delay_ms=60_000)


def error(
    reason: ProviderErrorKind = "server", *, retry_after_s: float | None = None
) -> ProviderError:
    return ProviderError("it failed", reason=reason, provider="p", retry_after_s=retry_after_s)


def finished(stop_reason: StopReason = "stop", *, full: bool = False) -> Finished:
    return Finished(message=assistant("words", stop_reason=stop_reason), over_threshold=full)


def after(outcome: AttemptOutcome, **more: Any) -> NextAction:
    given: dict[str, Any] = {
        "tries": 0,
        "compacted": False,
        "auto_compact": True,
        "settings": SETTINGS,
    }
    return next_action(outcome, **(given | more))


@pytest.mark.parametrize(
    ("outcome", "given", "then"),
    [
        (finished(), {}, StopRun()),
        (finished("length"), {}, StopRun()),
        (finished(full=True), {}, CompactAndStop(reason="threshold")),
        (finished(full=True), {"auto_compact": False}, StopRun()),
        (finished("length", full=True), {}, CompactAndContinue(reason="length", error=None)),
        (
            finished("length", full=True),
            {"compacted": True},
            CompactAndStop(reason="threshold"),
        ),
        (finished("length", full=True), {"auto_compact": False}, StopRun()),
    ],
    ids=["done", "cut-off", "full", "full-manual", "cut-off-full", "cut-off-again", "cut-manual"],
)
def test_after_an_answer(outcome: Finished, given: dict[str, object], then: NextAction) -> None:
    assert after(outcome, **given) == then


def test_an_overflow_is_compacted_once_and_only_when_that_is_allowed() -> None:
    overflow = error("context_overflow")
    failed = AttemptFailed(error=overflow)
    assert after(failed) == CompactAndContinue(reason="overflow", error=overflow)
    assert after(failed, compacted=True) == StopRun(error=overflow)
    assert after(failed, auto_compact=False) == StopRun(error=overflow)


@pytest.mark.parametrize(
    ("reason", "retried"),
    [
        ("server", True),
        ("network", True),
        ("timeout", True),
        ("rate_limit", True),
        ("protocol", True),
        ("auth", False),
        ("quota", False),
        ("not_found", False),
        ("invalid_request", False),
        ("refused", False),
    ],
)
def test_only_what_may_pass_by_waiting_is_tried_again(
    reason: ProviderErrorKind, *, retried: bool
) -> None:
    failure = error(reason)
    wanted = (
        RetryAfter(delay_s=2.0, attempt=1, error=failure) if retried else StopRun(error=failure)
    )
    assert after(AttemptFailed(error=failure)) == wanted


@pytest.mark.parametrize(
    "said",
    [
        "messages.1.content.0: `thinking` blocks cannot be modified",
        "Invalid `signature` in `thinking` block",
        "`tool_use` ids were found without `tool_result` blocks immediately after",
        "The encrypted content for item rs_1 could not be verified",
        "No tool output found for function call call_1",
        "Item with id 'rs_1' not found",
    ],
)
def test_a_history_that_is_refused_is_sent_plain_once(said: str) -> None:
    refused = ProviderError(said, reason="invalid_request", provider="p")
    assert after(AttemptFailed(error=refused)) == RetryWithoutThinking(error=refused)
    assert after(AttemptFailed(error=refused), plain=True) == StopRun(error=refused)
    other = ProviderError(said, reason="auth", provider="p")
    assert after(AttemptFailed(error=other)) == StopRun(error=other)


@pytest.mark.parametrize(
    ("tries", "jitter", "delay_s"),
    [
        (0, 0.0, 2.0),
        (1, 0.0, 4.0),
        (2, 0.0, 8.0),
        (0, JITTER, 2.4),
        (0, -JITTER, 1.6),
        (5, 0.0, 60.0),
        (5, JITTER, 60.0),
        (5, -JITTER, 51.2),
        (5_000, 0.0, 60.0),
    ],
)
def test_delays_double_and_never_exceed_the_limit(
    tries: int, jitter: float, delay_s: float
) -> None:
    failure = error()
    patient = RetryOptions(max_retries=10_000, base_delay_ms=2_000, max_delay_ms=60_000)
    assert after(
        AttemptFailed(error=failure), tries=tries, jitter=jitter, settings=patient
    ) == RetryAfter(delay_s=cast("Any", pytest.approx(delay_s)), attempt=tries + 1, error=failure)


@pytest.mark.parametrize(("asked_s", "then_s"), [(7.0, 7.0), (0.0, 0.0), (60.0, 60.0), (-1.0, 0.0)])
def test_the_time_that_the_provider_asks_for_is_waited_exactly(
    asked_s: float, then_s: float
) -> None:
    failure = error("rate_limit", retry_after_s=asked_s)
    assert after(AttemptFailed(error=failure), jitter=JITTER) == RetryAfter(
        delay_s=then_s, attempt=1, error=failure
    )


def test_a_longer_wait_than_allowed_ends_the_run() -> None:
    failure = error("rate_limit", retry_after_s=60.1)
    assert after(AttemptFailed(error=failure)) == StopRun(error=failure)


@pytest.mark.parametrize(
    ("tries", "settings"), [(3, SETTINGS), (0, RetryOptions(enabled=False))], ids=["used", "off"]
)
def test_no_tries_left_ends_the_run(tries: int, settings: RetryOptions) -> None:
    failure = error()
    assert after(AttemptFailed(error=failure), tries=tries, settings=settings) == StopRun(
        error=failure
    )


def test_jitter_is_drawn_within_its_share() -> None:
    drawn = [draw_jitter() for _ in range(1_000)]
    assert all(-JITTER <= one <= JITTER for one in drawn)
    assert len(set(drawn)) > 1
