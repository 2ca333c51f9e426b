"""Compaction of a session: asked for or needed, run, reported and kept."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
from msgspec.structs import replace

from agent_core.compaction import (
    Cancelled,
    Compacted,
    Compactor,
    CutOutput,
    NothingToCompact,
    SummaryUsage,
    cut_outputs,
    estimate_text,
    prepare,
    should_compact,
)
from agent_core.compaction.preparation import context_tokens
from agent_core.events import (
    CompactionEnded,
    CompactionReason,
    CompactionStarted,
    Failure,
    Notice,
    SessionUsage,
)
from agent_core.hooks import CompactionFailed, CompactionKept, HookRunner
from agent_core.kernel import EntryId
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage
from agent_core.providers import ToolDeclaration
from agent_core.session.context import EventPublisher, SessionOptions, SessionServices, failure_of
from agent_core.session.history.entries import (
    added_entry,
    compaction_entry,
    replaced_entry,
    usage_entry,
)
from agent_core.session.history.recorder import Recorder
from agent_core.session.model_selection import ModelSelection
from agent_core.session.runs.retry_policy import RetryAfter, after_failure, draw_jitter
from agent_core.session.runs.slot import AFTER_CANCEL_S, Activity
from agent_core.session.runs.usage import UsageTracker
from agent_core.transcript import AnyEntry, CompactionEntry, ContextEditEntry, MessageEntry
from agent_core.transcript.entries import CompactionPreparation


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

    def __init__(
        self, services: SessionServices, options: SessionOptions, activity: Activity
    ) -> None:
        self._services = services
        self._options = options
        self._activity = activity

    async def again(self, error: ProviderError, /, *, tries: int) -> bool:
        """Publish a notice, wait for the retry delay, and return True; return False if a retry would not help."""
        step = after_failure(error, tries=tries, settings=self._options.retry, jitter=draw_jitter())
        if not isinstance(step, RetryAfter):
            return False
        text = (
            f"the summary failed ({error}); try {step.attempt} of {self._options.retry.max_retries} "
            f"follows in {step.delay_s:.1f} s"
        )
        self._services.publisher.publish_for(self._activity, Notice(level="info", text=text))
        await self._services.clock.sleep(step.delay_s)
        return True


class SummarySpending(Value, frozen=True, kw_only=True):
    """Recorder of the usage of summaries that have no entry of their own."""

    publisher: EventPublisher
    models: ModelSelection
    recorder: Recorder
    usage: UsageTracker

    @asynccontextmanager
    async def tracked(self, kind: str) -> AsyncGenerator[SummaryUsage]:
        """Record the usage of a summary that fails or is cancelled; the entry of a stored summary has its own usage.

        Args:
            kind: The purpose of the summary, as in the session file.
        """
        spending = SummaryUsage()
        model = self.models.required().facts
        try:
            yield spending
        except BaseException:
            usage = spending.usage
            if usage.total or usage.cost is not None:
                with anyio.move_on_after(AFTER_CANCEL_S, shield=True):
                    _ = await self.recorder.keep(usage_entry(kind, model=model, usage=usage))
                self.usage.spent(usage)
                self.publisher.publish(SessionUsage(usage=self.usage.of_session()))
            raise


def _failure(error: ProviderError | None, why: str) -> Failure:
    if error is not None:
        return failure_of(error)
    return Failure(kind="ContextOverflow", message=why)


GOING_ON = "a compaction is going on already; wait for its end, or cancel it"
LEAST_FREED_SHARE = 4
"""After an overflow at least one part in this many of the context is cut: the estimate was too low."""


class CompactionResult(Value, frozen=True, kw_only=True):
    """Result of a compaction."""

    made_room: bool
    why: str = ""
    """Why there is no more room than before."""


class Compaction:
    """Compacts a session; a second one at the same time does nothing."""

    def __init__(
        self,
        services: SessionServices,
        *,
        models: ModelSelection,
        options: SessionOptions,
        recorder: Recorder,
        usage: UsageTracker,
        hooks: HookRunner,
    ) -> None:
        self.overhead_tokens = 0
        """Tokens of the system prompt and the tools, beside the conversation, as of the last run."""
        self._overhead_of: tuple[str, Sequence[ToolDeclaration]] = ("", ())
        """The system prompt and the tools whose tokens were estimated."""
        self._services = services
        self._models = models
        self._options = options
        self._recorder = recorder
        self._usage = usage
        self._hooks = hooks
        self._spending = SummarySpending(
            publisher=services.publisher, models=models, recorder=recorder, usage=usage
        )
        self._active: Activity | None = None
        self._failed_in: Activity | None = None

    @property
    def goes_on(self) -> bool:
        """Return whether one goes on; an abandoned one does not count."""
        return self._active is not None and not self._active.abandoned

    def set_overhead(self, system: str, tools: Sequence[ToolDeclaration]) -> None:
        """Estimate `overhead_tokens`; anew when the system prompt or a tool is another than at the last call."""
        if (system, tools) != self._overhead_of:
            self._overhead_of = (system, tools)
            declared = "".join(map(repr, tools))
            self.overhead_tokens = estimate_text(system) + estimate_text(declared)

    def gave_up_in(self, activity: Activity) -> bool:
        """Return whether this run asked for room and did not get it: it would be refused again each turn."""
        return self._failed_in is activity

    def is_over_threshold(self) -> bool:
        """Return whether the next request would be too near to the context window.

        Never before the model has answered on what the latest compaction left: another would change nothing.
        """
        window = self._models.context_window
        if not self._options.auto_compact or window <= 0:
            return False
        path = self._recorder.path()
        settings = self._options.compaction.of_model(self._models.ref)
        used = context_tokens(path, overhead=self.overhead_tokens)
        full = should_compact(used, context_window=window, settings=settings)
        return full and _answered_since_compaction(path)

    def prepare(
        self,
        keep_recent_tokens: int | None = None,
        *,
        pinned: EntryId | None = None,
        without: EntryId | None = None,
    ) -> CompactionPreparation | NothingToCompact:
        """Return what would be summarised, or why nothing would.

        Args:
            keep_recent_tokens: How much of the end stays as it is; None: as the settings say.
            pinned: An entry that stays word for word, with all that follows it.
            without: An entry that is about to be left out of the context.
        """
        settings = self._options.compaction.of_model(self._models.ref)
        if keep_recent_tokens is not None:
            settings = replace(settings, keep_recent_tokens=keep_recent_tokens)
        path = self._recorder.path()
        if without is not None:
            path = (*path, _left_out(without))
        return prepare(
            path,
            context_window=self._models.context_window,
            settings=settings,
            pinned=pinned,
            overhead=self.overhead_tokens,
        )

    async def compact(
        self,
        activity: Activity,
        reason: CompactionReason,
        *,
        instructions: str | None = None,
        will_retry: bool = False,
        keep_recent_tokens: int | None = None,
        pinned: EntryId | None = None,
    ) -> CompactionResult:
        """Compact now. A failure is told as an event and given back, never raised; cancellation goes up.

        When the summary does not fit the model either, or cannot be had and the run cannot go on without room,
        long tool output is cut instead.
        """
        if self.goes_on:
            return CompactionResult(made_room=False, why=GOING_ON)
        preparation = self.prepare(keep_recent_tokens, pinned=pinned)
        if isinstance(preparation, NothingToCompact) and (
            reason != "overflow" or not self._outputs_to_cut(reason)
        ):
            return CompactionResult(made_room=False, why=preparation.why)
        before = self._services.publisher.state
        self._active = activity
        self._services.publisher.set_state("compacting")
        self._services.publisher.publish_for(
            activity, CompactionStarted(run=activity.run, reason=reason)
        )
        ending = CompactionEndPublisher(
            publisher=self._services.publisher,
            activity=activity,
            reason=reason,
            tokens_before=self._tokens(),
            will_retry=will_retry,
        )
        try:
            if isinstance(preparation, NothingToCompact):
                return await self._without_summary(ending, None, preparation.why)
            return await self._with_summary(ending, preparation, instructions)
        except anyio.get_cancelled_exc_class():
            ending.aborted()
            with anyio.move_on_after(AFTER_CANCEL_S, shield=True):
                await self._notify_failed(reason, "it was cancelled", aborted=True)
            raise
        finally:
            if self._active is activity:
                self._active = None
            if not activity.abandoned:
                self._services.publisher.set_state(before if before != "compacting" else "idle")

    async def _with_summary(
        self,
        ending: CompactionEndPublisher,
        preparation: CompactionPreparation,
        instructions: str | None,
    ) -> CompactionResult:
        try:
            async with self._spending.tracked("compaction") as spending:
                result = await Compactor().compact(
                    preparation,
                    model=self._models.required(),
                    reason=ending.reason,
                    instructions=instructions,
                    hooks=self._hooks,
                    thinking=self._models.thinking,
                    patience=SummaryRetry(self._services, self._options, ending.activity),
                    spending=spending,
                )
        except ProviderError as error:
            if error.reason == "context_overflow" or ending.reason in {"overflow", "length"}:
                return await self._without_summary(ending, error, str(error))
            ending.failed(error)
            self._failed_in = ending.activity
            await self._notify_failed(ending.reason, str(error), aborted=False)
            return CompactionResult(made_room=False, why=str(error))
        if isinstance(result, Cancelled):
            why = result.why
            ending.aborted()
            self._failed_in = ending.activity
            await self._notify_failed(ending.reason, why, aborted=True)
            return CompactionResult(made_room=False, why=why)
        entry = await self._keep(result)
        if ending.reason == "overflow" and self._is_still_full():
            _ = await self._cut_outputs(ending.reason)
        ending.compacted(result.summary, tokens_after=self._tokens())
        self._publish_usage(ending.activity)
        _ = await self._hooks.ask(
            CompactionKept(
                reason=ending.reason,
                entry=entry,
                summary=result.summary,
                from_hook=result.from_hook,
            )
        )
        return CompactionResult(made_room=True)

    async def _without_summary(
        self, ending: CompactionEndPublisher, error: ProviderError | None, why: str
    ) -> CompactionResult:
        """Cut tool output where a summary cannot be had: the last resort, and tried once."""
        count = await self._cut_outputs(ending.reason)
        if not count:
            ending.failed(error, why)
            self._failed_in = ending.activity
            await self._notify_failed(ending.reason, why, aborted=False)
            return CompactionResult(made_room=False, why=why)
        ending.cut(error, why, outputs=count, tokens_after=self._tokens())
        self._publish_usage(ending.activity)
        await self._notify_failed(ending.reason, why, aborted=False)
        return CompactionResult(made_room=True)

    async def _keep(self, result: Compacted) -> EntryId:
        from agent_core.session.history.todo import todo_message  # noqa: PLC0415 - at first use

        now_ms = self._services.clock.now_ms()
        todo = todo_message(self._recorder.path(), first_kept=result.first_kept, at_ms=now_ms)
        drafts = () if todo is None else (added_entry(todo),)
        entry = await self._recorder.keep(compaction_entry(result), *drafts)
        if result.usage is not None:
            self._usage.spent(result.usage)
        self._usage.edited()
        return entry

    async def _notify_failed(self, reason: CompactionReason, why: str, *, aborted: bool) -> None:
        _ = await self._hooks.ask(CompactionFailed(reason=reason, error=why, aborted=aborted))

    async def _cut_outputs(self, reason: CompactionReason) -> int:
        """Cut tool output in the context, durably; says how many."""
        outputs = self._outputs_to_cut(reason)
        if outputs:
            drafts = [replaced_entry(one.target, one.content) for one in outputs]
            _ = await self._recorder.keep(*drafts)
            self._usage.edited()
        return len(outputs)

    def _outputs_to_cut(self, reason: CompactionReason) -> tuple[CutOutput, ...]:
        used = self._tokens()
        room = self._room()
        free = used - room if room else 0
        if reason == "overflow":
            free = max(free, used // LEAST_FREED_SHARE)
        return cut_outputs(self._recorder.path(), free_tokens=free)

    def _is_still_full(self) -> bool:
        return 0 < self._room() < self._tokens()

    def _room(self) -> int:
        """Return how many tokens the context may hold; 0 when the window is unknown."""
        window = self._models.context_window
        settings = self._options.compaction.of_model(self._models.ref).scaled(window)
        return max(window - settings.reserve_tokens, 0)

    def _tokens(self) -> int:
        return context_tokens(self._recorder.path(), overhead=self.overhead_tokens)

    def _publish_usage(self, activity: Activity) -> None:
        usage = self._usage.of_session()
        self._services.publisher.publish_for(activity, SessionUsage(usage=usage))


def _answered_since_compaction(path: tuple[AnyEntry, ...]) -> bool:
    for entry in reversed(path):
        match entry:
            case CompactionEntry():
                return False
            case MessageEntry(message=AssistantMessage()):
                return True
            case _:
                pass
    return True


def _left_out(target: EntryId) -> ContextEditEntry:
    return ContextEditEntry(id=EntryId(""), parent=None, at_ms=0, target=target, replacement=None)
