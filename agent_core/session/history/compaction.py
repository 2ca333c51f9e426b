"""The one flow of compaction, whatever the reason: prepare, ask hooks and model, keep, tell."""

import anyio
from msgspec.structs import replace

from agent_core.compaction import (
    Cancelled,
    Compacted,
    CutOutput,
    NothingToCompact,
    cut_outputs,
    prepare,
    should_compact,
)
from agent_core.compaction.estimate import context_tokens
from agent_core.events import CompactionReason, CompactionStarted, SessionUsage
from agent_core.hooks import CompactionFailed, CompactionKept
from agent_core.kernel import EntryId
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage
from agent_core.session.context import SessionContext
from agent_core.session.history.compaction_events import (
    CompactionEndPublisher,
    SummaryRetry,
    tracked_spending,
)
from agent_core.session.history.entries import compaction_entry, replaced_entry
from agent_core.session.runs.hooks import AFTER_CANCEL_S
from agent_core.session.runs.slot import Activity
from agent_core.transcript import AnyEntry, CompactionEntry, ContextEditEntry, MessageEntry
from agent_core.transcript.preparation import CompactionPreparation

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

    def __init__(self, parts: SessionContext) -> None:
        self.overhead_tokens = 0
        """Tokens of the system prompt and the tools, beside the conversation, as of the last run."""
        self._parts = parts
        self._active: Activity | None = None
        self._failed_in: Activity | None = None

    @property
    def goes_on(self) -> bool:
        """Return whether one goes on; one that was fenced off does not count."""
        return self._active is not None and not self._active.abandoned

    def gave_up_in(self, activity: Activity) -> bool:
        """Return whether this run asked for room and did not get it: it would be refused again each turn."""
        return self._failed_in is activity

    def is_over_threshold(self) -> bool:
        """Return whether the next request would be too near to the context window.

        Never before the model has answered on what the latest compaction left: another would change nothing.
        """
        parts = self._parts
        window = parts.models.context_window
        if not parts.options.auto_compact or window <= 0:
            return False
        path = parts.recorder.path()
        settings = parts.options.compaction.of_model(parts.models.ref)
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
        parts = self._parts
        settings = parts.options.compaction.of_model(parts.models.ref)
        if keep_recent_tokens is not None:
            settings = replace(settings, keep_recent_tokens=keep_recent_tokens)
        path = parts.recorder.path()
        if without is not None:
            path = (*path, _left_out(without))
        return prepare(
            path,
            context_window=parts.models.context_window,
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
        parts = self._parts
        before = parts.publisher.state
        self._active = activity
        parts.publisher.set_state("compacting")
        parts.publisher.publish_for(activity, CompactionStarted(run=activity.run, reason=reason))
        ending = CompactionEndPublisher(
            publisher=parts.publisher,
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
                parts.publisher.set_state(before if before != "compacting" else "idle")

    async def _with_summary(
        self,
        ending: CompactionEndPublisher,
        preparation: CompactionPreparation,
        instructions: str | None,
    ) -> CompactionResult:
        parts = self._parts
        try:
            async with tracked_spending(parts, "compaction") as spending:
                result = await parts.compactor.compact(
                    preparation,
                    model=parts.models.required(),
                    reason=ending.reason,
                    instructions=instructions,
                    hooks=parts.hooks,
                    thinking=parts.models.thinking,
                    patience=SummaryRetry(parts, ending.activity),
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
            why = "a hook cancelled the compaction"
            ending.aborted()
            self._failed_in = ending.activity
            await self._notify_failed(ending.reason, why, aborted=True)
            return CompactionResult(made_room=False, why=why)
        entry = await self._keep(result)
        if ending.reason == "overflow" and self._is_still_full():
            _ = await self._cut_outputs(ending.reason)
        ending.compacted(result.summary, tokens_after=self._tokens())
        self._publish_usage(ending.activity)
        _ = await parts.hooks.ask(
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
        parts = self._parts
        entry = await parts.recorder.keep(compaction_entry(result))
        if result.usage is not None:
            parts.tally.spent(result.usage)
        parts.tally.edited()
        return entry

    async def _notify_failed(self, reason: CompactionReason, why: str, *, aborted: bool) -> None:
        _ = await self._parts.hooks.ask(CompactionFailed(reason=reason, error=why, aborted=aborted))

    async def _cut_outputs(self, reason: CompactionReason) -> int:
        """Cut tool output in the context, durably; says how many."""
        parts = self._parts
        outputs = self._outputs_to_cut(reason)
        if outputs:
            drafts = [replaced_entry(one.target, one.content) for one in outputs]
            _ = await parts.recorder.keep(*drafts)
            parts.tally.edited()
        return len(outputs)

    def _outputs_to_cut(self, reason: CompactionReason) -> tuple[CutOutput, ...]:
        used = self._tokens()
        room = self._room()
        free = used - room if room else 0
        if reason == "overflow":
            free = max(free, used // LEAST_FREED_SHARE)
        return cut_outputs(self._parts.recorder.path(), free_tokens=free)

    def _is_still_full(self) -> bool:
        return 0 < self._room() < self._tokens()

    def _room(self) -> int:
        """Return how many tokens the context may hold; 0 when the window is unknown."""
        parts = self._parts
        window = parts.models.context_window
        settings = parts.options.compaction.of_model(parts.models.ref).scaled(window)
        return max(window - settings.reserve_tokens, 0)

    def _tokens(self) -> int:
        return context_tokens(self._parts.recorder.path(), overhead=self.overhead_tokens)

    def _publish_usage(self, activity: Activity) -> None:
        parts = self._parts
        usage = parts.tally.of_session(parts.models.context_window)
        parts.publisher.publish_for(activity, SessionUsage(usage=usage))


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
