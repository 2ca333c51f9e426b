"""How words get into a session: started, steered, queued or held, and safe in the file before anybody is told so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent_core.events import CustomMark, Delivery, QueueChanged, QueueItem
from agent_core.kernel import ItemId, MessageId, QueueId, RunId
from agent_core.kernel.errors import (
    PriceUnknown,
    RunMismatch,
    RunNotActive,
    SessionBusy,
    TillerError,
    UsageError,
)
from agent_core.loop import Words
from agent_core.messages import CustomMessage, Text, UserContent
from agent_core.session.aside import Until, tell_added
from agent_core.session.budgets import unpriced
from agent_core.session.changes import Ledger
from agent_core.session.compacting import Compaction
from agent_core.session.conduct import Conductor, Opening
from agent_core.session.drafts import added_entry, prompt_entries, queued_entry
from agent_core.session.parts import Parts
from agent_core.session.runs import Activity, Runs

Accepted = Literal["started", "steered", "queued", "held", "duplicate", "added"]
AddDelivery = Literal["append", "steer", "followUp", "nextTurn"]
Deliver = Literal["auto", "steer", "followUp", "reject"]
IfIdle = Literal["start", "hold", "reject"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of words; they are in the session's file."""

    accepted: Accepted
    run: RunId | None
    """The run that they began, joined or wait for."""
    queue_id: QueueId | None = None
    seq: int
    """The newest event when they were taken; what they cause comes after it."""


class Intake:
    """Takes words in. Between looking at what goes on and reserving the session there is no waiting."""

    def __init__(
        self,
        parts: Parts,
        runs: Runs,
        *,
        compaction: Compaction,
        known: dict[MessageId, RunId | None],
    ) -> None:
        self.ledger = Ledger()
        """What the current or last run changed."""
        self.closed = False
        self._parts = parts
        self._runs = runs
        self._compaction = compaction
        self._known = known

    async def prompt(
        self,
        content: str | Sequence[UserContent],
        *,
        delivery: Deliver | None,
        message_id: MessageId | None,
        if_idle: IfIdle,
        expected_run: RunId | None,
    ) -> Receipt:
        """Take words in, as `AgentSession.prompt` says."""
        if message_id is not None and message_id in self._known:
            return self._receipt("duplicate", self._known[message_id])
        words = _content(content)
        current = self._runs.current
        running = current.run if current else None
        if expected_run is not None and running != expected_run:
            message = f"run {expected_run!r} was expected, but {running!r} is going on; look at the session first"
            raise RunMismatch(message)
        if current is None:
            return await self._when_idle(words, delivery, message_id, if_idle)
        if current.kind == "compaction":
            return await self._queue(words, "followUp", message_id, "queued")
        match delivery:
            case "auto" | "steer":
                return await self._queue(words, "steer", message_id, "steered")
            case "followUp":
                return await self._queue(words, "followUp", message_id, "queued")
            case _:
                message = (
                    f"run {running!r} is going on; steer it, queue a follow-up, or wait for its end"
                )
                raise SessionBusy(message)

    async def add(
        self, content: str | Sequence[UserContent], *, mark: CustomMark, delivery: AddDelivery
    ) -> Receipt:
        """Take a program's words in, as `AgentSession.add` says."""
        if not mark.custom_type.strip():
            message = f"custom_type is {mark.custom_type!r}; say what kind of words these are"
            raise UsageError(message)
        words = _content(content)
        current = self._runs.current
        if delivery == "nextTurn":
            return await self._lay_aside(words, mark, until="prompt")
        if delivery == "append":
            if current is None:
                return await self._append(words, mark)
            return await self._lay_aside(words, mark, until="turn")
        if current is None:
            return await self._start(words, None, mark)
        if delivery == "steer" and current.kind == "run":
            return await self._queue(words, "steer", None, "steered", mark)
        return await self._queue(words, "followUp", None, "queued", mark)

    async def _append(self, content: tuple[UserContent, ...], mark: CustomMark) -> Receipt:
        parts = self._parts
        message = _custom(content, mark, at_ms=parts.clock.now_ms())
        seq = parts.voice.feed.seq
        entry = await parts.recorder.accept(added_entry(message))
        tell_added(
            message,
            run=None,
            item=ItemId(parts.new_id()),
            entry=entry,
            delivery=None,
            say=parts.voice.say,
        )
        return Receipt(accepted="added", run=None, seq=seq)

    async def _lay_aside(
        self, content: tuple[UserContent, ...], mark: CustomMark, *, until: Until
    ) -> Receipt:
        parts = self._parts
        message = _custom(content, mark, at_ms=parts.clock.now_ms())
        current = self._runs.current
        seq = parts.voice.feed.seq
        await parts.aside.accept(message, until=until)
        return Receipt(accepted="held", run=current.run if current else None, seq=seq)

    async def _when_idle(
        self,
        words: tuple[UserContent, ...],
        delivery: Deliver | None,
        message_id: MessageId | None,
        if_idle: IfIdle,
    ) -> Receipt:
        if delivery == "steer" and if_idle == "reject":
            message = "nothing is running that could be steered; send a prompt instead"
            raise RunNotActive(message)
        if delivery == "steer" and if_idle == "hold":
            self._parts.inbox.paused = True
            return await self._queue(words, "steer", message_id, "held")
        return await self._start(words, message_id)

    async def _start(
        self,
        content: tuple[UserContent, ...],
        message_id: MessageId | None,
        mark: CustomMark | None = None,
    ) -> Receipt:
        model = self._parts.models.required()
        if why := unpriced(self._parts.place.allowance.budgets, model.facts):
            raise PriceUnknown(why)
        run = RunId(self._parts.new_id())
        activity = self._runs.reserve("run", run)
        words = Words(content=content, delivery="prompt", message_id=message_id, custom=mark)
        self._remember(message_id, run)
        self._parts.inbox.paused = False
        try:
            entry = await self._parts.recorder.accept(*prompt_entries(words, run))
        except BaseException:
            self._forget(message_id)
            self._runs.release(activity)
            raise
        receipt = self._receipt("started", run)
        self._carry(activity, (Opening(words=words, entry=entry),))
        return receipt

    async def _queue(
        self,
        content: tuple[UserContent, ...],
        delivery: Delivery,
        message_id: MessageId | None,
        accepted: Accepted,
        mark: CustomMark | None = None,
    ) -> Receipt:
        parts = self._parts
        parts.inbox.check_room()
        current = self._runs.current
        run = current.run if current else None
        item = QueueItem(
            queue_id=QueueId(parts.new_id()),
            delivery=delivery,
            content=content,
            at_ms=parts.clock.now_ms(),
            custom=mark,
        )
        self._remember(message_id, run)
        try:
            _ = await parts.recorder.accept(queued_entry(item, message_id))
        except TillerError:
            self._forget(message_id)
            raise
        parts.inbox.put(item, message_id)
        seq = parts.voice.feed.seq
        if mark is None:
            _ = parts.voice.say(QueueChanged(queue=parts.inbox.items(), paused=parts.inbox.paused))
        self.go_on()
        return Receipt(accepted=accepted, run=run, queue_id=item.queue_id, seq=seq)

    def _carry(self, activity: Activity, openings: tuple[Opening, ...]) -> None:
        self.ledger = Ledger()
        conductor = Conductor(
            self._parts,
            activity,
            runs=self._runs,
            compaction=self._compaction,
            ledger=self.ledger,
        )

        async def work() -> None:
            if unwritten := self._parts.models.take_unwritten():
                _ = await self._parts.recorder.keep(*unwritten)
            await conductor.conduct(openings)

        self._runs.start(activity, work, then=self.go_on)

    def go_on(self) -> None:
        """Begin a run with what waits, when nothing goes on and nothing holds it back."""
        parts = self._parts
        if self.closed or parts.inbox.paused or self._runs.current is not None:
            return
        words = parts.inbox.take_next()
        if not words:
            return
        activity = self._runs.reserve("run", RunId(parts.new_id()))
        self._carry(activity, tuple(Opening(words=one, entry=None) for one in words))

    def _receipt(self, accepted: Accepted, run: RunId | None) -> Receipt:
        return Receipt(accepted=accepted, run=run, seq=self._parts.voice.feed.seq)

    def _remember(self, message_id: MessageId | None, run: RunId | None) -> None:
        if message_id is not None:
            self._known[message_id] = run

    def _forget(self, message_id: MessageId | None) -> None:
        if message_id is not None:
            _ = self._known.pop(message_id, None)


def _custom(content: tuple[UserContent, ...], mark: CustomMark, *, at_ms: int) -> CustomMessage:
    return CustomMessage(
        custom_type=mark.custom_type,
        content=content,
        display=mark.display,
        details=mark.details,
        at_ms=at_ms,
    )


def _content(content: str | Sequence[UserContent]) -> tuple[UserContent, ...]:
    parts = (Text(text=content),) if isinstance(content, str) else tuple(content)
    if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
        message = "the prompt is empty; say something"
        raise UsageError(message)
    return parts
