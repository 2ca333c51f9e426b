"""The attempts of one run: how each ended, and what is done before the next."""

import anyio
from msgspec.structs import replace

from agent_core.compaction import NothingToCompact
from agent_core.events import Failure, RetryEnded, RetryStarted
from agent_core.kernel.errors import BudgetExceeded, ProviderError
from agent_core.loop import LoopContext, RequestConfig, run_turns
from agent_core.messages import AssistantMessage
from agent_core.providers import ModelInfo
from agent_core.providers.http.errors import overflowed_silently
from agent_core.providers.messages.request_options import configured_retention
from agent_core.session.context import ActiveRun, SessionOptions, failure_of
from agent_core.session.history.compaction import Compaction
from agent_core.session.input.queue import InputQueue
from agent_core.session.model_selection import ModelSelection
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
from agent_core.session.runs.transcript_port import RunTranscript, TurnPreparation
from agent_core.session.runs.usage import RunBudgets
from agent_core.session.tools.registry import ToolRegistry


class RunRequests:
    """Builds the requests of a run from the choices in force."""

    def __init__(
        self,
        models: ModelSelection,
        *,
        toolbox: ToolRegistry,
        options: SessionOptions,
        budgets: RunBudgets,
    ) -> None:
        self.system = ""
        """The system prompt of the run."""
        self.plain = False
        """Thoughts and signatures are left out of requests: a provider refused them."""
        self.asked: ModelInfo | None = None
        """The model of the newest request."""
        self._models = models
        self._toolbox = toolbox
        self._options = options
        self._budgets = budgets

    def next(self) -> RequestConfig:
        """Return the parameters of the next request."""
        model = self._models.required()
        self.asked = model.facts
        return RequestConfig(
            model=model,
            thinking=self._models.thinking,
            system=self.system,
            tools=self._toolbox.declarations(),
            without_thoughts=self.plain,
            parallel=self._options.tool_execution == "parallel",
            concurrency=self._options.tool_concurrency,
            is_last=self._budgets.last_turn is not None,
            skip_on_steer=self._options.skip_on_steer,
            steer_grace_s=self._options.steer_grace_s,
            cache=configured_retention(model.facts) or self._options.cache,
        )


class Attempts:
    """Runner of the turns of one run: decides after each attempt what follows, and does it."""

    def __init__(
        self,
        run: ActiveRun,
        *,
        requests: RunRequests,
        models: ModelSelection,
        options: SessionOptions,
        queue: InputQueue,
        transcript: RunTranscript,
        turns: TurnPreparation,
        budgets: RunBudgets,
        compaction: Compaction,
    ) -> None:
        self._run = run
        self._requests = requests
        self._models = models
        self._options = options
        self._queue = queue
        self._transcript = transcript
        self._turns = turns
        self._budgets = budgets
        self._compaction = compaction
        self._answered = False

    @property
    def text(self) -> str:
        """The last text of the model."""
        return self._transcript.text

    async def run_attempt(self, loop: LoopContext) -> NextAction:
        """Run turns until they end, and return the next action."""
        options = self._options
        # After an answer that ended the turns nothing but what waited for their end may go on.
        follows = self._answered and not self._queue.has_steering()
        self._answered = False
        try:
            message = await run_turns(loop, first=self._queue.take_follow_ups if follows else None)
        except ProviderError as error:
            asked = None if self._requests.asked is None else self._requests.asked.ref
            outcome = AttemptFailed(error=error, other_model=asked != self._models.ref)
        else:
            self._answered = True
            outcome = self._outcome(message)
        return next_action(
            outcome,
            tries=self._transcript.retries.made,
            compacted=self._transcript.recovered,
            plain=self._requests.plain,
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
        await self._transcript.exclude_attempt()
        if isinstance(step, RetryWithoutThinking):
            self._requests.plain = True
            return
        retries = self._transcript.retries
        retries.made += 1
        retries.going_on = retries.made
        failure = failure_of(step.error)
        self._run.publish(
            RetryStarted(
                run=self._run.id,
                attempt=retries.made,
                max_attempts=self._options.retry.max_retries,
                delay_ms=round(step.delay_s * 1000),
                error=failure,
            )
        )
        self._run.services.publisher.set_state("retrying")
        try:
            await self._run.services.clock.sleep(step.delay_s)
        except anyio.get_cancelled_exc_class():
            self._publish_failed(replace(failure, message="Retry cancelled"))
            raise
        self._run.services.publisher.set_state("running")

    async def recover(self, step: CompactAndContinue) -> bool:
        """Leave the attempt out of the context and compact, once; return False when another attempt is pointless.

        Raises:
            BudgetExceeded: The failed attempt has used up the run's budget.
        """
        self._check_budgets(step.error)
        transcript = self._transcript
        transcript.recovered = True
        if step.error is None and isinstance(
            self._compaction.prepare(without=transcript.attempt), NothingToCompact
        ):
            return False
        await transcript.exclude_attempt()
        done = await self._compaction.compact(self._run.activity, step.reason, will_retry=True)
        self._answered = not done.made_room
        return done.made_room

    async def make_room(self, step: CompactAndStop) -> None:
        """Compact for the next prompt."""
        _ = await self._compaction.compact(self._run.activity, step.reason)

    def fail(self, error: ProviderError | None) -> ProviderError | None:
        """End the retry that goes on, if one does; gives the error back, by which the run ends."""
        if error is not None and self._transcript.retries.going_on:
            self._publish_failed(failure_of(error))
        return error

    def _check_budgets(self, error: ProviderError | None) -> None:
        """Check that the run may pay for another request; when it may not, the retry that goes on is over.

        Raises:
            BudgetExceeded: It may not.
        """
        try:
            self._budgets.check()
        except BudgetExceeded:
            _ = self.fail(error)
            raise

    def _publish_failed(self, failure: Failure) -> None:
        attempt = self._transcript.retries.going_on
        self._run.publish(
            RetryEnded(run=self._run.id, success=False, attempt=attempt, error=failure)
        )

    def _outcome(self, message: AssistantMessage) -> AttemptOutcome:
        if message.stop_reason == "aborted":
            return Aborted()
        facts = self._requests.asked
        window = self._models.context_window
        # What did not fit a model that was left meanwhile says nothing of the one that goes on.
        same = facts is not None and facts.ref == self._models.ref
        return Finished(
            message=message,
            over_threshold=self._turns.is_full(),
            overflowed=same and overflowed_silently(message, context_window=window),
            max_tokens=0 if facts is None else facts.max_tokens,
        )
