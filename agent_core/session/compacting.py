"""The one flow of compaction, whatever the reason: prepare, ask hooks and model, keep, tell."""

from dataclasses import dataclass, replace

import anyio

from agent_core.compaction import (
    Cancelled,
    Compacted,
    NothingToCompact,
    prepare,
    should_compact,
)
from agent_core.compaction.estimate import context_tokens
from agent_core.events import CompactionEnded, CompactionReason, CompactionStarted, Failure
from agent_core.kernel.errors import ProviderError
from agent_core.session.drafts import compaction_entry
from agent_core.session.parts import Parts, failure_of
from agent_core.session.runs import Activity
from agent_core.transcript.preparation import CompactionPreparation


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a compaction came to."""

    compacted: bool
    why: str = ""


class Compaction:
    """Compacts a session. Called by whoever holds the session's activity, so never twice at once."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def is_over_threshold(self) -> bool:
        """Tell whether the next request would be too near to the context window."""
        parts = self._parts
        window = parts.models.context_window
        if not parts.options.auto_compact or window <= 0:
            return False
        used = context_tokens(parts.recorder.path())
        return should_compact(used, context_window=window, settings=parts.options.compaction)

    def prepare(
        self, keep_recent_tokens: int | None = None
    ) -> CompactionPreparation | NothingToCompact:
        """Say what would be summarised, or why nothing would."""
        parts = self._parts
        settings = parts.options.compaction
        if keep_recent_tokens is not None:
            settings = replace(settings, keep_recent_tokens=keep_recent_tokens)
        return prepare(
            parts.recorder.path(),
            context_window=parts.models.context_window,
            settings=settings,
        )

    async def compact(
        self,
        activity: Activity,
        reason: CompactionReason,
        *,
        instructions: str | None = None,
        will_retry: bool = False,
        keep_recent_tokens: int | None = None,
    ) -> Done:
        """Compact now. A failure is told as an event and given back, never raised; cancellation goes up."""
        preparation = self.prepare(keep_recent_tokens)
        if isinstance(preparation, NothingToCompact):
            return Done(compacted=False, why=preparation.why)
        parts = self._parts
        before = parts.voice.state
        parts.voice.say_state("compacting")
        parts.voice.say_of(activity, CompactionStarted(run=activity.run, reason=reason))
        ending = _Ending(self._parts, activity, reason, preparation.tokens_before)
        try:
            result = await parts.compactor.compact(
                preparation,
                model=parts.models.required(),
                reason=reason,
                instructions=instructions,
                hooks=parts.hooks,
            )
            if isinstance(result, Cancelled):
                ending.say(aborted=True)
                return Done(compacted=False, why="a hook cancelled the compaction")
            await self._keep(result)
            ending.say(summary=result.summary, will_retry=will_retry)
            return Done(compacted=True)
        except ProviderError as error:
            ending.say(error=failure_of(error))
            return Done(compacted=False, why=str(error))
        except anyio.get_cancelled_exc_class():
            ending.say(aborted=True)
            raise
        finally:
            if not activity.fenced:
                parts.voice.say_state(before if before != "compacting" else "idle")

    async def _keep(self, result: Compacted) -> None:
        parts = self._parts
        _ = await parts.recorder.keep(compaction_entry(result))
        if result.usage is not None:
            parts.tally.spent(result.usage)
        parts.tally.compacted(context_tokens(parts.recorder.path()))


@dataclass(frozen=True, slots=True)
class _Ending:
    """Tells the end of a compaction."""

    parts: Parts
    activity: Activity
    reason: CompactionReason
    tokens_before: int

    def say(
        self,
        *,
        summary: str | None = None,
        aborted: bool = False,
        will_retry: bool = False,
        error: Failure | None = None,
    ) -> None:
        after = context_tokens(self.parts.recorder.path()) if summary is not None else None
        self.parts.voice.say_of(
            self.activity,
            CompactionEnded(
                run=self.activity.run,
                reason=self.reason,
                summary=summary,
                tokens_before=self.tokens_before,
                tokens_after=after,
                aborted=aborted,
                will_retry=will_retry,
                error=error,
            ),
        )
