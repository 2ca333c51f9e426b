"""The attempts of one run: how each ended, and what is done before the next."""

from collections.abc import Callable

import anyio
from msgspec.structs import replace

from agent_core.compaction import NothingToCompact
from agent_core.events import Event, Failure, RetryEnded, RetryStarted
from agent_core.kernel import RunId
from agent_core.kernel.errors import BudgetExceeded, ProviderError
from agent_core.loop import LoopContext, run_turns
from agent_core.messages import AssistantMessage
from agent_core.providers import ModelInfo
from agent_core.providers.http.overflow import overflowed_silently
from agent_core.session.context import SessionContext, failure_of
from agent_core.session.history.compaction import Compaction
from agent_core.session.runs.retry_policy import (
    Aborted,
    AttemptFailed,
    AttemptOutcome,
    CompactAndContinue,
    CompactAndStop,
    Finished,
    NextAction,
    RetryAfter,
    RetryWithoutThinking,
    draw_jitter,
    next_action,
)
from agent_core.session.runs.slot import Activity
from agent_core.session.runs.transcript_port import RunTranscript


class Attempts:
    """Runner of the turns of one run: decides after each attempt what follows, and does it."""

    def __init__(
        self,
        parts: SessionContext,
        activity: Activity,
        *,
        run: RunId,
        port: RunTranscript,
        compaction: Compaction,
        publish: Callable[[Event], None],
    ) -> None:
        self.plain = False
        """Thoughts and signatures are left out of requests: a provider refused them."""
        self.asked: ModelInfo | None = None
        """The model of the newest request."""
        self._parts = parts
        self._activity = activity
        self._run = run
        self._port = port
        self._compaction = compaction
        self._publish = publish
        self._answered = False

    async def run_attempt(self, loop: LoopContext) -> NextAction:
        """Run turns until they end, and return the next action."""
        options = self._parts.options
        return next_action(
            await self._turns(loop),
            tries=self._port.retries.made,
            compacted=self._port.recovered,
            plain=self.plain,
            auto_compact=options.auto_compact,
            settings=options.retry,
            jitter=draw_jitter(),
        )

    async def prepare_retry(self, step: RetryWithoutThinking | RetryAfter) -> None:
        """Prepare another attempt: at once without the thinking that was refused, or after a delay.

        On cancellation during the delay, the end of the retry is published before the cancellation is raised.

        Raises:
            BudgetExceeded: The failed attempt has used up the run's budget.
        """
        self._check_budgets(step.error)
        await self._port.exclude_attempt()
        if isinstance(step, RetryWithoutThinking):
            self.plain = True
            return
        retries = self._port.retries
        retries.made += 1
        retries.going_on = retries.made
        failure = failure_of(step.error)
        self._publish(
            RetryStarted(
                run=self._run,
                attempt=retries.made,
                max_attempts=self._parts.options.retry.max_retries,
                delay_ms=round(step.delay_s * 1000),
                error=failure,
            )
        )
        self._parts.publisher.set_state("retrying")
        try:
            await self._parts.clock.sleep(step.delay_s)
        except anyio.get_cancelled_exc_class():
            self._publish_failed(replace(failure, message="Retry cancelled"))
            raise
        self._parts.publisher.set_state("running")

    async def recover(self, step: CompactAndContinue) -> bool:
        """Leave the attempt out of the context and compact, once; return False when another attempt is pointless.

        Raises:
            BudgetExceeded: The failed attempt has used up the run's budget.
        """
        self._check_budgets(step.error)
        port = self._port
        port.recovered = True
        if step.error is None and isinstance(
            self._compaction.prepare(without=port.attempt), NothingToCompact
        ):
            return False
        await port.exclude_attempt()
        done = await self._compaction.compact(self._activity, step.reason, will_retry=True)
        self._answered = not done.made_room
        return done.made_room

    async def make_room(self, step: CompactAndStop) -> None:
        """Compact for the next prompt."""
        _ = await self._compaction.compact(self._activity, step.reason)

    def fail(self, error: ProviderError | None) -> ProviderError | None:
        """End the retry that goes on, if one does; gives the error back, by which the run ends."""
        if error is not None and self._port.retries.going_on:
            self._publish_failed(failure_of(error))
        return error

    def _check_budgets(self, error: ProviderError | None) -> None:
        """Check that the run may pay for another request; when it may not, the retry that goes on is over.

        Raises:
            BudgetExceeded: It may not.
        """
        try:
            self._port.check_budgets()
        except BudgetExceeded:
            _ = self.fail(error)
            raise

    def _publish_failed(self, failure: Failure) -> None:
        attempt = self._port.retries.going_on
        self._publish(RetryEnded(run=self._run, success=False, attempt=attempt, error=failure))

    async def _turns(self, loop: LoopContext) -> AttemptOutcome:
        inbox = self._parts.inbox
        # After an answer that ended the turns nothing but what waited for their end may go on.
        follows = self._answered and not inbox.has_steering()
        self._answered = False
        try:
            message = await run_turns(loop, first=inbox.take_follow_ups if follows else None)
        except ProviderError as error:
            asked = None if self.asked is None else self.asked.ref
            return AttemptFailed(error=error, other_model=asked != self._parts.models.ref)
        self._answered = True
        if message.stop_reason == "aborted":
            return Aborted()
        return self._finished(message)

    def _finished(self, message: AssistantMessage) -> Finished:
        facts = self.asked
        window = self._parts.models.context_window
        # What did not fit a model that was left meanwhile says nothing of the one that goes on.
        same = facts is not None and facts.ref == self._parts.models.ref
        return Finished(
            message=message,
            over_threshold=self._port.is_full(),
            overflowed=same and overflowed_silently(message, context_window=window),
            max_tokens=0 if facts is None else facts.max_tokens,
        )
