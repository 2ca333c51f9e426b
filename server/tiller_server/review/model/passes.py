"""Has the model look at the parts of a change, one run each, within the budgets of the whole review."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Literal

import anyio.to_thread
import msgspec
from msgspec import Struct

from agent_core.events import EventSubscription, MessageEnded, RunEnded, RunResult
from agent_core.kernel import Clock, MessageId
from agent_core.kernel.errors import ModelUnknown
from agent_core.kernel.values import Value
from agent_core.messages import UserMessage
from agent_core.session import AgentSession
from agent_core.session.input.submission import Receipt
from agent_core.transcript.entries import MessageEntry
from tiller_server.review.findings.result import Finding, LeftOut, ReviewedFile
from tiller_server.review.model.budget import ReviewBudgetTracker
from tiller_server.review.model.chunks import ReviewChunk
from tiller_server.review.model.prompts import closing_prompt, part_prompt
from tiller_server.review.model.report_tool import Reports
from tiller_server.review.model.stored_runs import StoredRun, message_id_of
from tiller_server.review.options import ReviewCancellation, ReviewWatcher
from tiller_server.review.rules import ProjectRules

ReviewStopReason = Literal["budget", "outage", "refused", "cancelled", "failed"]
STOPS: Final[Mapping[str, ReviewStopReason]] = {
    "budget": "budget",
    "refused": "refused",
    "cancelled": "cancelled",
    "interrupted": "cancelled",
}
ASKED_FOR_KEY: Final = "AuthRequired"
OUTAGES: Final = frozenset({"ModelError", "RateLimited"})


class ModelReviewResult(Struct, kw_only=True):
    """Result of the model's runs over the parts."""

    read: list[ReviewedFile] = msgspec.field(default_factory=list[ReviewedFile])
    part_summaries: list[str] = msgspec.field(default_factory=list[str])
    """The last words of each part."""
    summary: str = ""
    stopped: ReviewStopReason | None = None
    why: str | None = None
    """Reason for an early end, in one sentence; None when the runs completed."""


class PromptOutcome(Value, frozen=True, kw_only=True):
    """Result of one prompt, by one run or several that continued each other."""

    status: str
    text: str


class ModelReviewer(Value, frozen=True, kw_only=True):
    """One review's way through its parts."""

    session: AgentSession
    clock: Clock
    spending: ReviewBudgetTracker
    watcher: ReviewWatcher
    rules: ProjectRules
    wishes: str
    stop: ReviewCancellation
    left_out: Sequence[LeftOut] = ()
    reports: Reports
    stored: Mapping[MessageId, StoredRun]
    """Runs of the session from before it was opened; a prompt of a finished one is not sent again."""

    async def review_parts(self, parts: Sequence[ReviewChunk]) -> ModelReviewResult:
        """Look at all parts; ends early, with what there is, when a run does not complete.

        Raises:
            UsageError: The model cannot be asked at all.
        """
        look = ModelReviewResult()
        names = [[one.path for one in part.files()] for part in parts]
        for number, part in enumerate(parts, start=1):
            self.watcher.part(number, len(parts))
            others = [
                f"{name} (in another part)"
                for place, each in enumerate(names, start=1)
                if place != number
                for name in each
            ]
            others += [f"{one.path} ({one.reason})" for one in self.left_out]
            write = partial(
                part_prompt,
                part,
                number=number,
                count=len(parts),
                rules=self.rules,
                wishes=self.wishes,
                others=others,
            )
            prompt = await anyio.to_thread.run_sync(write)
            result = await self._run(prompt, look)
            if result is None or result.status != "completed":
                break
            look.read.extend(one for one in part.files() if one not in look.read)
            look.part_summaries.append(result.text.strip())
        if len(parts) == 1 and look.part_summaries:
            look.summary = look.part_summaries[0]
        return look

    async def summarise(self, look: ModelReviewResult, findings: Sequence[Finding]) -> None:
        """Have the summary of several parts written; without it the review is whole all the same."""
        self.watcher.part(len(look.part_summaries) + 1, len(look.part_summaries))
        result = await self._run(
            closing_prompt(findings, part_summaries=look.part_summaries), ModelReviewResult()
        )
        if result is not None and result.status == "completed":
            look.summary = result.text.strip()

    async def _run(self, prompt: str, look: ModelReviewResult) -> PromptOutcome | None:
        message_id = message_id_of(prompt)
        stored = self.stored.get(message_id)
        if stored is not None:
            for arguments in stored.reports:
                await self.reports.repeat(arguments)
            self.spending.add(stored.usage, turns=stored.turns)
            if stored.is_finished:
                return _judged(stored, look)
        now_s = self.clock.monotonic_s()
        if name := self.spending.used_up(now_s):
            look.stopped = "budget"
            look.why = f"the review ended at its budget (budgets.{name})"
            return None
        _ = self.session.info.configure(budgets=self.spending.left(now_s))
        if self.stop.asked:
            look.stopped, look.why = "cancelled", "it was stopped"
            return None
        reader = self.session.subscribe()
        try:
            receipt = await self._start(prompt, message_id, stored)
            if self.stop.asked:  # there was nothing to abort yet
                _ = await self.session.abort()
            turns = await self._follow(reader, receipt.run)
            result = await self.session.wait(receipt.run) if receipt.run else None
        finally:
            reader.close()
        if result is None:
            look.stopped, look.why = "failed", "the model was not asked: something took the words"
            return None
        self.spending.add(result.usage.tokens, turns=turns)
        _judge(result, look)
        return PromptOutcome(status=result.status, text=result.text)

    async def _start(self, prompt: str, message_id: MessageId, stored: StoredRun | None) -> Receipt:
        """Start the run of a prompt, or the one that continues an interrupted run of it."""
        if stored is not None:
            return await self.session.retry(stored.run)
        await self._begin_anew()
        return await self.session.prompt(prompt, message_id=message_id)

    async def _begin_anew(self) -> None:
        """Start a branch at the session's beginning, so that a part does not see those before it."""
        first = next(
            (
                entry.id
                for entry in self.session.info.entries
                if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)
            ),
            None,
        )
        if first is not None:
            _ = await self.session.tree.navigate(first)

    async def _follow(self, reader: EventSubscription, run: object) -> int:
        turns = 0
        while events := await reader.take():
            for stamped in events:
                self.watcher.see(stamped)
                event = stamped.event
                turns += isinstance(event, MessageEnded) and event.role == "assistant"
                if isinstance(event, RunEnded) and event.run == run:
                    return turns
        return turns


def _judged(stored: StoredRun, look: ModelReviewResult) -> PromptOutcome:
    if stored.status != "completed":
        look.stopped = STOPS.get(stored.status, "failed")
        look.why = f"the run was {stored.status}"
    return PromptOutcome(status=stored.status, text=stored.text.strip())


def _judge(result: RunResult, look: ModelReviewResult) -> None:
    if result.status == "completed":
        return
    error = result.error
    if error is not None and error.kind == ASKED_FOR_KEY and not look.read:
        raise ModelUnknown(error.message)
    look.stopped = STOPS.get(result.status) or (
        "outage" if error is not None and (error.retryable or error.kind in OUTAGES) else "failed"
    )
    look.why = error.message if error is not None else f"the run was {result.status}"
