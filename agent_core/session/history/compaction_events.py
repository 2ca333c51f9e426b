"""Events of a compaction: its end, the retries of its request, and the cost of a failed one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from agent_core.compaction import SummaryUsage
from agent_core.events import CompactionEnded, CompactionReason, Failure, Notice, SessionUsage
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import Value
from agent_core.session.context import EventPublisher, SessionContext, failure_of
from agent_core.session.history.entries import usage_entry
from agent_core.session.runs.hooks import AFTER_CANCEL_S
from agent_core.session.runs.retry_policy import RetryAfter, after_failure, draw_jitter
from agent_core.session.runs.slot import Activity


class CompactionEndPublisher(Value, frozen=True, kw_only=True):
    """Publisher of the end of one compaction: completed, aborted, failed, or replaced by cut tool output."""

    publisher: EventPublisher
    activity: Activity
    reason: CompactionReason
    tokens_before: int
    will_retry: bool
    """The run goes on when there is room."""

    def compacted(self, summary: str, *, tokens_after: int) -> None:
        """Report that there is a summary."""
        self._publish(summary=summary, tokens_after=tokens_after, will_retry=self.will_retry)

    def aborted(self) -> None:
        """Report that somebody did not want it."""
        self._publish(aborted=True)

    def failed(self, error: ProviderError | None, why: str = "") -> None:
        """Report that there is no more room than before."""
        self._publish(error=_failure(error, why))

    def cut(
        self, error: ProviderError | None, why: str, *, outputs: int, tokens_after: int
    ) -> None:
        """Report that tool output was cut because there is no summary."""
        failure = _failure(error, why)
        self._publish(error=failure, tokens_after=tokens_after, will_retry=self.will_retry)
        text = (
            f"there is no summary of the conversation ({failure.message}); to make room, the output of "
            f"{outputs} tool {'call' if outputs == 1 else 'calls'} was cut to its beginning instead"
        )
        self.publisher.publish_for(self.activity, Notice(level="warning", text=text))

    def _publish(
        self,
        *,
        summary: str | None = None,
        tokens_after: int | None = None,
        aborted: bool = False,
        will_retry: bool = False,
        error: Failure | None = None,
    ) -> None:
        self.publisher.publish_for(
            self.activity,
            CompactionEnded(
                run=self.activity.run,
                reason=self.reason,
                summary=summary,
                tokens_before=self.tokens_before,
                tokens_after=tokens_after,
                aborted=aborted,
                will_retry=will_retry,
                error=error,
            ),
        )


class SummaryRetry:
    """Has a summary asked for again after failures that may pass, as the retry settings say."""

    def __init__(self, parts: SessionContext, activity: Activity) -> None:
        self._parts = parts
        self._activity = activity

    async def again(self, error: ProviderError, /, *, tries: int) -> bool:
        """Publish a notice, wait for the retry delay, and return True; return False if a retry would not help."""
        parts = self._parts
        step = after_failure(error, tries=tries, settings=parts.options.retry, jitter=draw_jitter())
        if not isinstance(step, RetryAfter):
            return False
        text = (
            f"the summary failed ({error}); try {step.attempt} of {parts.options.retry.max_retries} "
            f"follows in {step.delay_s:.1f} s"
        )
        parts.publisher.publish_for(self._activity, Notice(level="info", text=text))
        await parts.clock.sleep(step.delay_s)
        return True


@asynccontextmanager
async def tracked_spending(parts: SessionContext, kind: str) -> AsyncGenerator[SummaryUsage]:
    """Record the usage of a summary that fails or is cancelled; the entry of a stored summary has its own usage.

    Args:
        parts: The parts of the session.
        kind: The purpose of the summary, as in the session file.
    """
    spending = SummaryUsage()
    model = parts.models.required().facts
    try:
        yield spending
    except BaseException:
        usage = spending.usage
        if usage.total or usage.cost is not None:
            with anyio.move_on_after(AFTER_CANCEL_S, shield=True):
                _ = await parts.recorder.keep(usage_entry(kind, model=model, usage=usage))
            parts.tally.spent(usage)
            usage_event = SessionUsage(usage=parts.tally.of_session(parts.models.context_window))
            _ = parts.publisher.publish(usage_event)
        raise


def _failure(error: ProviderError | None, why: str) -> Failure:
    if error is not None:
        return failure_of(error)
    return Failure(kind="ContextOverflow", message=why)
