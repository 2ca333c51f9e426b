"""How words get into a session: started, steered, queued or held, and safe in the file before anybody is told so."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from agent_core.events import Delivery, InjectedBy, InputSource, QueueItem
from agent_core.kernel import EntryId, ItemId, MessageId, QueueId, RunId
from agent_core.kernel.errors import RunMismatch, RunNotActive, SessionBusy, UsageError
from agent_core.kernel.values import Value
from agent_core.loop import UserInput
from agent_core.messages import CustomMessage, Text, UserContent
from agent_core.session.context import SessionContext
from agent_core.session.history.entries import (
    added_entry,
    prompt_entries,
    queued_entry,
    unqueued_entries,
)
from agent_core.session.input.deferred_messages import FlushPoint, publish_added
from agent_core.session.input.queue_edit import check_content
from agent_core.session.input.queue_events import publish_queue, release_queue
from agent_core.session.model_selection import check_images
from agent_core.session.runs.executor import RunInput
from agent_core.session.runs.slot import TITLES, Activity, ActivitySlot
from agent_core.session.runs.starter import RunStarter

AcceptedAs = Literal["started", "steered", "queued", "held", "duplicate", "handled", "added"]
AddDelivery = Literal["append", "steer", "followUp", "nextTurn"]
Deliver = Literal["auto", "steer", "followUp", "reject"]
IfIdle = Literal["start", "hold", "reject"]
NOTHING_RUNS = "nothing is running that could be steered; send a prompt instead"


class Receipt(Value, frozen=True, kw_only=True):
    """Result of a submitted message; the message is in the session's file."""

    accepted: AcceptedAs
    run: RunId | None
    """The run that they began, joined or wait for."""
    queue_id: QueueId | None = None
    """Where they wait; None: nowhere, or not any more."""
    seq: int
    """The newest event when the message was accepted; the events that it causes come after it."""


class _Precondition(Value, frozen=True, kw_only=True):
    """State of the session that the sender of a message expects."""

    expected_run: RunId | None = None
    if_idle: IfIdle = "start"
    source: InputSource = "person"
    """Whose words they are: a program's run no commands and are not written out."""


NO_PRECONDITION = _Precondition()


class PromptSubmitter:
    """Intake of prompts and messages, with no await between the check of the session's state and its reservation."""

    def __init__(self, parts: SessionContext, runs: ActivitySlot, starter: RunStarter) -> None:
        self._parts = parts
        self._runs = runs
        self._starter = starter

    async def prompt(
        self,
        content: str | Sequence[UserContent],
        *,
        delivery: Deliver | None,
        message_id: MessageId | None,
        if_idle: IfIdle,
        expected_run: RunId | None,
        source: InputSource = "person",
    ) -> Receipt:
        """Accept a prompt, as `AgentSession.prompt` describes."""
        self._starter.check_open()
        if message_id is not None and await self._parts.message_index.is_recorded(message_id):
            return self._duplicate(message_id)
        blocks = _content(content)
        precondition = _Precondition(expected_run=expected_run, if_idle=if_idle, source=source)
        self._check_run(precondition)
        if source == "person" and self._parts.commands.start(blocks):
            return self._handled(message_id)
        check_images(self._parts.models, blocks)
        current = self._runs.current
        if current is None:
            return await self._when_idle(blocks, delivery, message_id, precondition)
        if delivery == "reject" or (delivery is None and current.kind == "run"):
            raise SessionBusy(_busy(current))
        if current.kind != "run" or delivery == "followUp":
            return await self._queue(
                blocks, "followUp", message_id, "queued", precondition=precondition
            )
        return await self._queue(blocks, "steer", message_id, "steered", precondition=precondition)

    async def add(
        self, content: str | Sequence[UserContent], *, mark: InjectedBy, delivery: AddDelivery
    ) -> Receipt:
        """Accept a message of a program, as `AgentSession.add` describes."""
        self._starter.check_open()
        if not mark.custom_type.strip():
            message = f"custom_type is {mark.custom_type!r}; say what kind of words these are"
            raise UsageError(message)
        blocks = _content(content)
        current = self._runs.current
        if delivery == "nextTurn":
            return await self._defer(blocks, mark, flush_at="prompt")
        if delivery == "append":
            if current is None:
                return await self._append(blocks, mark)
            return await self._defer(blocks, mark, flush_at="turn")
        if current is None:
            return await self._start(blocks, None, mark)
        if delivery == "steer" and current.kind == "run":
            return await self._queue(blocks, "steer", None, "steered", mark=mark)
        return await self._queue(blocks, "followUp", None, "queued", mark=mark)

    async def _append(self, content: tuple[UserContent, ...], mark: InjectedBy) -> Receipt:
        parts = self._parts
        message = _custom(content, mark, at_ms=parts.clock.now_ms())
        seq = parts.publisher.feed.seq
        entry = await parts.recorder.accept(added_entry(message))
        publish_added(
            message,
            run=None,
            item=ItemId(parts.new_id()),
            entry=entry,
            delivery=None,
            publish=parts.publisher.publish,
        )
        return Receipt(accepted="added", run=None, seq=seq)

    async def _defer(
        self, content: tuple[UserContent, ...], mark: InjectedBy, *, flush_at: FlushPoint
    ) -> Receipt:
        parts = self._parts
        message = _custom(content, mark, at_ms=parts.clock.now_ms())
        current = self._runs.current
        seq = parts.publisher.feed.seq
        await parts.deferred.accept(message, flush_at=flush_at)
        return Receipt(accepted="held", run=current.run if current else None, seq=seq)

    def _check_run(self, precondition: _Precondition) -> None:
        current = self._runs.current
        running = current.run if current else None
        if precondition.expected_run is not None and running != precondition.expected_run:
            message = f"run {precondition.expected_run!r} was expected, but {running!r} is going on; look at the session first"
            raise RunMismatch(message)

    async def _when_idle(
        self,
        content: tuple[UserContent, ...],
        delivery: Deliver | None,
        message_id: MessageId | None,
        precondition: _Precondition,
    ) -> Receipt:
        match precondition.if_idle:
            case "reject":
                raise RunNotActive(NOTHING_RUNS)
            case "hold":
                self._parts.inbox.paused = True
                waits: Delivery = "steer" if delivery == "steer" else "followUp"
                return await self._queue(
                    content, waits, message_id, "held", precondition=precondition
                )
            case _:
                return await self._start(content, message_id, source=precondition.source)

    async def _start(
        self,
        content: tuple[UserContent, ...],
        message_id: MessageId | None,
        mark: InjectedBy | None = None,
        *,
        source: InputSource = "person",
    ) -> Receipt:
        parts = self._parts
        activity, run = self._starter.reserve()
        parts.message_index.begin(message_id)
        user_input = UserInput(
            content=content, delivery="prompt", message_id=message_id, custom=mark, source=source
        )
        entries: list[EntryId] = []

        async def write() -> None:
            try:
                entries.append(await parts.recorder.accept(*prompt_entries(user_input, run)))
                parts.message_index.record(message_id, run)
            except BaseException:
                self._runs.release(activity)
                raise
            finally:
                parts.message_index.end(message_id)

        def begin() -> None:
            release_queue(parts)
            self._starter.start(activity, (RunInput(user_input=user_input, entry=entries[0]),))

        await parts.recorder.background.shielded(write, then=begin)
        return Receipt(accepted="started", run=run, seq=parts.publisher.feed.seq)

    async def _queue(
        self,
        content: tuple[UserContent, ...],
        delivery: Delivery,
        message_id: MessageId | None,
        accepted: AcceptedAs,
        *,
        mark: InjectedBy | None = None,
        precondition: _Precondition = NO_PRECONDITION,
    ) -> Receipt:
        parts = self._parts
        parts.inbox.reserve_slot()
        parts.message_index.begin(message_id)
        current = self._runs.current
        item = QueueItem(
            queue_id=QueueId(parts.new_id()),
            delivery=delivery,
            content=content,
            at_ms=parts.clock.now_ms(),
            custom=mark,
            source=precondition.source,
        )
        write = partial(self._put, item, message_id, current, precondition)
        seq = await parts.recorder.background.shielded(write, then=self._starter.go_on)
        return self._queued_receipt(item, accepted, before=current, seq=seq)

    async def _put(
        self,
        item: QueueItem,
        message_id: MessageId | None,
        current: Activity | None,
        precondition: _Precondition,
    ) -> int:
        """Write words that wait and put them into the queue; gives the newest event before that."""
        parts = self._parts
        run = current.run if current else None
        try:
            _ = await parts.recorder.accept(queued_entry(item, message_id, run))
            if self._is_too_late(current, precondition):
                _ = await parts.recorder.keep(*unqueued_entries([item], "refused"))
                if precondition.expected_run is None:
                    raise RunNotActive(NOTHING_RUNS)
                message = f"run {run!r} ended while the words for it were written; look at the session first"
                raise RunMismatch(message)
            parts.message_index.record(message_id, run)
            parts.inbox.put(item, message_id)
        finally:
            parts.inbox.release_slot()
            parts.message_index.end(message_id)
        seq = parts.publisher.feed.seq
        if item.custom is None:
            publish_queue(parts)
        return seq

    def _is_too_late(self, current: Activity | None, precondition: _Precondition) -> bool:
        """Return whether what words were meant for ended while they were being written, and they must not begin a run."""
        goes_on = self._runs.current is current
        if current is None or (goes_on and not current.scope.cancel_called):
            return False
        if precondition.if_idle == "hold" and self._runs.current is None:
            self._parts.inbox.paused = True
        return precondition.expected_run is not None or precondition.if_idle == "reject"

    def _queued_receipt(
        self, item: QueueItem, accepted: AcceptedAs, *, before: Activity | None, seq: int
    ) -> Receipt:
        """Return what became of words that were put: the run that they were meant for may be over."""
        parts = self._parts
        current = self._runs.current
        latest = current or before
        run = latest.run if latest else None
        waits = parts.inbox.waits(item.queue_id)
        if waits and parts.inbox.paused:
            accepted = "held"
        elif current is not before and not waits:
            accepted = "started"
        return Receipt(accepted=accepted, run=run, queue_id=item.queue_id, seq=seq)

    def _handled(self, message_id: MessageId | None) -> Receipt:
        """Report that a command runs: it is no part of the conversation, unless it says something itself."""
        self._parts.message_index.record(message_id, None)
        return Receipt(accepted="handled", run=None, seq=self._parts.publisher.feed.seq)

    def _duplicate(self, message_id: MessageId) -> Receipt:
        parts = self._parts
        return Receipt(
            accepted="duplicate",
            run=parts.message_index.run_of(message_id),
            queue_id=parts.inbox.queue_id_of(message_id),
            seq=parts.publisher.feed.seq,
        )


def _busy(current: Activity) -> str:
    if current.kind != "run":
        what = TITLES[current.kind]
        return f"{what} is going on; wait for its end, or leave delivery out to queue behind it"
    return f"run {current.run!r} is going on; steer it, queue a follow-up, or wait for its end"


def _custom(content: tuple[UserContent, ...], mark: InjectedBy, *, at_ms: int) -> CustomMessage:
    return CustomMessage(
        custom_type=mark.custom_type,
        content=content,
        display=mark.display,
        details=mark.details,
        at_ms=at_ms,
    )


def _content(content: str | Sequence[UserContent]) -> tuple[UserContent, ...]:
    parts = (Text(text=content),) if isinstance(content, str) else tuple(content)
    check_content(parts)
    return parts
