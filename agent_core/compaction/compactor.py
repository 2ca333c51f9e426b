"""Has the older part of a conversation summarised by a model."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

import msgspec
from anyio import to_thread
from msgspec import Struct

from agent_core.compaction.preparation import (
    LARGEST_SHARE,
    TouchedFiles,
    estimate_text,
    recut,
)
from agent_core.compaction.prompts import (
    NO_HISTORY,
    SYSTEM,
    history_prompt,
    merged,
    turn_prompt,
    with_files,
)
from agent_core.events import CompactionReason, ThinkingLevel
from agent_core.hooks import Compacting, CompactionCancelled, CutChosen, Hooks, SummaryGiven
from agent_core.kernel import EntryId, JsonValue
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, Message, Text, Usage, UserMessage
from agent_core.providers import Model, ModelInfo, ModelRequest, StreamFinished, UsageUpdate
from agent_core.transcript import CompactionPreparation

BuiltT = TypeVar("BuiltT")
PROMPT_TOKENS = 2_000
"""Tokens reserved for the instructions around a conversation; an upper bound."""


class RetryPolicy(Protocol):
    """Decides whether a request that failed is made again."""

    async def again(self, error: ProviderError, /, *, tries: int) -> bool:
        """Wait as long as it takes and give True; False at once when there is no sense in another try.

        Args:
            error: Why the request failed.
            tries: Retries made so far, 0 after the first failure.
        """
        ...


class NoRetry:
    """Never tries again."""

    async def again(self, error: ProviderError, /, *, tries: int) -> bool:
        """Return up."""
        _ = error, tries
        return False


class Compacted(Value, frozen=True, kw_only=True):
    """A summary that can stand for everything before `first_kept`."""

    summary: str
    first_kept: EntryId
    tokens_before: int
    usage: Usage | None
    """Usage of the summary; None if a hook supplied it."""
    details: JsonValue
    """`readFiles` and `modifiedFiles`, or what the hook gave."""
    from_hook: bool = False


class SummaryUsage(Struct):
    """Counts what the requests for one summary used; holds as well when it fails or is cancelled."""

    usage: Usage = msgspec.field(default_factory=Usage)


class Cancelled(Value, frozen=True, kw_only=True):
    """A hook did not want it, or wanted what is not possible."""

    why: str = "a hook cancelled the compaction"


NO_CUT_POINT: Final = (
    "a hook chose entry {entry} as the first that is kept, where the conversation cannot be cut; "
    "`cut_points` of the event lists the entries at which it can"
)


class Compactor:
    """Makes summaries; writes nothing itself and keeps no state, so a cancelled call leaves nothing behind."""

    async def compact(
        self,
        preparation: CompactionPreparation,
        *,
        model: Model,
        reason: CompactionReason,
        instructions: str | None,
        hooks: Hooks,
        thinking: ThinkingLevel = "off",
        patience: RetryPolicy | None = None,
        spending: SummaryUsage | None = None,
    ) -> Compacted | Cancelled:
        """Summarise the prepared messages.

        A blank summary of a hook is ignored. A conversation too long for the model is shortened (tool output, then its middle).

        Args:
            preparation: Result of `prepare` for the current path.
            model: Model that writes the summary.
            reason: Passed to the hooks.
            instructions: Focus of the summary that the user asks for.
            hooks: Asked before the model.
            thinking: The session's level; used only if the model reasons.
            patience: Asked after each request that failed; None: no request is repeated.
            spending: Counts the usage, also when nothing is returned.

        Raises:
            ProviderError: The model cannot be reached, or its answer is empty, cut off by its length, or a tool call.
        """
        outcome = await hooks.ask(_announced(preparation, reason, instructions))
        if isinstance(outcome, CompactionCancelled):
            return Cancelled()
        if isinstance(outcome, SummaryGiven | CutChosen) and (entry := outcome.first_kept):
            if entry not in preparation.cut_points:
                return Cancelled(why=NO_CUT_POINT.format(entry=entry))
            preparation = recut(preparation, entry)
        if isinstance(outcome, SummaryGiven) and outcome.summary.strip():
            return Compacted(
                summary=outcome.summary,
                first_kept=preparation.first_kept,
                tokens_before=preparation.tokens_before,
                usage=None,
                details=outcome.details,
                from_hook=True,
            )
        scribe = Summariser(
            model,
            thinking=thinking if model.facts.reasoning else "off",
            patience=patience or NoRetry(),
            spending=spending or SummaryUsage(),
        )
        summary = await scribe.summary(preparation, instructions=instructions)
        files = TouchedFiles(read=preparation.read_files, modified=preparation.modified_files)
        return Compacted(
            summary=with_files(summary, files),
            first_kept=preparation.first_kept,
            tokens_before=preparation.tokens_before,
            usage=scribe.usage,
            details=files.details(),
        )


class Summariser:
    """Asks one model for one summary, in one or two calls, and counts what they used."""

    def __init__(
        self,
        model: Model,
        *,
        thinking: ThinkingLevel,
        patience: RetryPolicy,
        spending: SummaryUsage,
    ) -> None:
        self._model = model
        self._thinking: ThinkingLevel = thinking
        self._patience = patience
        self._spending = spending

    @property
    def usage(self) -> Usage:
        """Usage so far."""
        return self._spending.usage

    async def summary(self, preparation: CompactionPreparation, *, instructions: str | None) -> str:
        """Summarise the history, then the beginning of a split turn."""
        earlier = preparation.previous_summary
        history = earlier
        if preparation.messages:
            history = await self.notes(
                preparation.messages,
                lambda text: history_prompt(
                    text, previous_summary=earlier, instructions=instructions
                ),
            )
        if not preparation.turn_prefix:
            return history or ""
        turn = await self.notes(
            preparation.turn_prefix, lambda text: turn_prompt(text, instructions=instructions)
        )
        return merged(history or NO_HISTORY, turn)

    async def notes(self, messages: Sequence[Message], prompt: Callable[[str], str]) -> str:
        """Have notes written on messages, which are shortened to what fits; the prompt is made of their text."""
        from agent_core.compaction.prompts import TIGHTER_RESULT_CHARS, serialise_within  # noqa: PLC0415 - at first use

        model = self._model.facts
        around = estimate_text(prompt("")) + PROMPT_TOKENS
        room = _room(model, around=around)
        text = await _on_thread(partial(serialise_within, messages, tokens=room))
        try:
            return await self._ask(prompt(text))
        except ProviderError as error:
            if error.reason != "context_overflow":
                raise
        # Our estimate was too low. Once more with half of it; a second refusal goes up.
        half = await _on_thread(partial(estimate_text, text)) // 2
        text = await _on_thread(
            partial(serialise_within, messages, tokens=half, limits=TIGHTER_RESULT_CHARS[-1:])
        )
        return await self._ask(prompt(text))

    async def _ask(self, prompt: str) -> str:
        request = ModelRequest(
            system=SYSTEM,
            messages=(UserMessage(content=(Text(text=prompt),), at_ms=0),),
            thinking=self._thinking,
            max_tokens=_answer_tokens(self._model.facts),
            # Nobody sends these words again: writing them to a cache would only cost.
            cache="none",
            purpose="compaction",
        )
        answer = await self._patiently(request)
        fault = _fault(answer)
        if fault is not None:
            raise self._failed(fault)
        return answer.text.strip()

    async def _patiently(self, request: ModelRequest) -> AssistantMessage:
        tries = 0
        while True:
            try:
                return await self._answer(request)
            except ProviderError as error:
                if not await self._patience.again(error, tries=tries):
                    raise
            tries += 1

    async def _answer(self, request: ModelRequest) -> AssistantMessage:
        used = Usage()
        try:
            async with self._model.stream(request) as parts:
                async for part in parts:
                    if isinstance(part, UsageUpdate):
                        used = part.usage
                    if isinstance(part, StreamFinished):
                        used = part.message.usage
                        return part.message
        finally:
            # A try that broke off is paid for too.
            self._spending.usage = self.usage.plus(used)
        raise self._failed("the stream ended before the answer did")

    def _failed(self, why: str) -> ProviderError:
        model = self._model.facts
        return ProviderError(
            f"Summarization failed: {why}", reason="protocol", provider=model.provider
        )


async def _on_thread(work: Callable[[], BuiltT]) -> BuiltT:
    """Run pure work on a thread: on a conversation of 100 MB it takes seconds, and others wait for the loop."""
    return await to_thread.run_sync(work, abandon_on_cancel=True)


def _announced(
    preparation: CompactionPreparation, reason: CompactionReason, instructions: str | None
) -> Compacting:
    return Compacting(
        reason=reason,
        messages=(*preparation.messages, *preparation.turn_prefix),
        previous_summary=preparation.previous_summary,
        instructions=instructions,
        tokens_before=preparation.tokens_before,
        kept=preparation.kept,
        first_kept=preparation.first_kept,
        cut_points=preparation.cut_points,
    )


def _answer_tokens(model: ModelInfo) -> int | None:
    """Return how long the answer may be; None: as long as the model can."""
    most = model.context_window // LARGEST_SHARE
    # A server with a small window refuses a request whose input and output limit do not fit together.
    return most if 0 < most < model.max_tokens else None


def _room(model: ModelInfo, *, around: int) -> int | None:
    if model.context_window <= 0:
        return None
    answer = _answer_tokens(model) or model.max_tokens
    return max(0, model.context_window - answer - around)


def _fault(answer: AssistantMessage) -> str | None:
    """Return why an answer cannot be relied on as a summary; None: it can."""
    if answer.tool_calls:
        return "the model called a tool instead of writing the summary"
    match answer.stop_reason:
        case "error" | "aborted":
            return answer.error or "the model ended its answer with an error"
        case "length":
            return "the summary was cut off by the model's output limit, so it is incomplete"
        case "tool_use":
            return "the model called a tool instead of writing the summary"
        case "stop":
            return None if answer.text.strip() else "the model gave an empty summary"
