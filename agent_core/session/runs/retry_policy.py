"""Next action of a run after its turns have ended: pure, so that it can be read as a table."""

import random
import re
from collections.abc import Sequence

from agent_core.events import CompactionReason
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, Message
from agent_core.providers.http.client import is_retryable

JITTER = 0.2
REFUSED_HISTORY = re.compile(
    "|".join(
        (
            "thinking|thought|signature|reasoning|encrypted.content",
            "tool_use|tool_result|tool call|function call|item with id",
        )
    ),
    re.IGNORECASE,
)
DOUBLINGS = 30
"""Beyond, a delay does not grow any more: it is longer than any limit."""


class RetryOptions(Value, frozen=True, kw_only=True):
    """How failing model calls are tried again."""

    enabled: bool = True
    max_retries: int = 3
    base_delay_ms: int = 2_000
    max_delay_ms: int = 60_000


class Finished(Value, frozen=True, kw_only=True):
    """The turns ended with an answer."""

    message: AssistantMessage
    over_threshold: bool
    """The context is fuller than compaction allows."""
    overflowed: bool = False
    """The answer was given on a conversation that did not fit, without an error."""
    max_tokens: int = 0
    """Maximum output tokens of one model answer; 0 when unknown."""


class AttemptFailed(Value, frozen=True, kw_only=True):
    """A model call failed."""

    error: ProviderError
    other_model: bool = False
    """Another model was chosen during the call: an overflow of the old model does not count for the new one."""


class Aborted(Value, frozen=True, kw_only=True):
    """The user stopped the run, or the model's server did."""


AttemptOutcome = Finished | AttemptFailed | Aborted


class StopRun(Value, frozen=True, kw_only=True):
    """The run is over; with an error it failed."""

    error: ProviderError | None = None


class RetryAfter(Value, frozen=True, kw_only=True):
    """Wait, then go on from where the transcript stands."""

    delay_s: float
    attempt: int
    """1 for the first retry."""
    error: ProviderError


class CompactAndContinue(Value, frozen=True, kw_only=True):
    """Leave the attempt out of the context, make room, then go on from where the transcript stands."""

    reason: CompactionReason
    error: ProviderError | None


class CompactAndStop(Value, frozen=True, kw_only=True):
    """Make room for the next prompt; the run is over."""

    reason: CompactionReason


class RetryWithoutThinking(Value, frozen=True, kw_only=True):
    """Go on at once without the thoughts and signatures that the provider refused."""

    error: ProviderError


NextAction = StopRun | RetryAfter | CompactAndContinue | CompactAndStop | RetryWithoutThinking


def next_action(
    outcome: AttemptOutcome,
    *,
    tries: int,
    compacted: bool,
    plain: bool = False,
    auto_compact: bool,
    settings: RetryOptions,
    jitter: float = 0.0,
) -> NextAction:
    """Return what follows. Pure: no waiting, no I/O.

    Args:
        outcome: How the turns ended.
        tries: Retries made so far for this prompt.
        compacted: This prompt's overflow was already answered by a compaction; there is only one.
        plain: Thoughts and signatures are left out already; that is tried once for each prompt.
        auto_compact: Compaction may run unasked.
        settings: How to retry.
        jitter: Share by which the delay differs, -0.2 to 0.2; the caller draws it.
    """
    match outcome:
        case Finished():
            return _after_answer(outcome, compacted=compacted) if auto_compact else StopRun()
        case Aborted():
            return StopRun()
        case AttemptFailed(error=error) if error.reason == "context_overflow":
            goes_on = auto_compact and not compacted and not outcome.other_model
            return (
                CompactAndContinue(reason="overflow", error=error)
                if goes_on
                else StopRun(error=error)
            )
        case AttemptFailed(error=error):
            if not plain and _refuses_history(error):
                return RetryWithoutThinking(error=error)
            return after_failure(error, tries=tries, settings=settings, jitter=jitter)


def after_failure(
    error: ProviderError, *, tries: int, settings: RetryOptions, jitter: float = 0.0
) -> StopRun | RetryAfter:
    """Return whether a model call that failed is made again, and when; an overflow never is."""
    if not settings.enabled or tries >= settings.max_retries or not is_retryable(error):
        return StopRun(error=error)
    most_s = settings.max_delay_ms / 1000
    asked_s = error.retry_after_s
    if asked_s is not None and asked_s > most_s:
        return StopRun(error=error)
    doubled_s = settings.base_delay_ms / 1000 * 2.0 ** min(tries, DOUBLINGS)
    backoff_s = min(doubled_s * (1 + jitter), most_s)
    delay_s = backoff_s if asked_s is None else max(asked_s, 0.0)
    return RetryAfter(delay_s=delay_s, attempt=tries + 1, error=error)


def draw_jitter() -> float:
    """Draw how much a delay differs, so that many sessions do not knock at once."""
    return random.uniform(-JITTER, JITTER)  # noqa: S311 - no secret depends on it


def whole_answer(context: Sequence[Message]) -> AssistantMessage | None:
    """Return the answer after which nothing is left to do; None: the model is to be asked."""
    last = context[-1] if context else None
    if not isinstance(last, AssistantMessage) or last.tool_calls:
        return None
    return None if last.stop_reason in {"error", "aborted"} else last


def _refuses_history(error: ProviderError) -> bool:
    """Return whether a request was refused for the thoughts, signatures or tool pairs of earlier answers."""
    return error.reason == "invalid_request" and REFUSED_HISTORY.search(str(error)) is not None


def _after_answer(finished: Finished, *, compacted: bool) -> NextAction:
    """Return whether room is made: for the same answer again, for the next prompt, or not at all."""
    cut_short = finished.message.stop_reason == "length"
    if cut_short and not compacted and (finished.overflowed or _left_no_room(finished)):
        return CompactAndContinue(
            reason="overflow" if finished.overflowed else "length", error=None
        )
    if finished.overflowed:
        return CompactAndStop(reason="overflow")
    return CompactAndStop(reason="threshold") if finished.over_threshold else StopRun()


def _left_no_room(finished: Finished) -> bool:
    """Return whether an answer was cut off by a full context rather than by the model's own limit."""
    usage = finished.message.usage
    if usage.total == 0:
        return finished.over_threshold
    return usage.output < finished.max_tokens
