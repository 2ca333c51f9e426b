"""Submission of prompts: each once, prepared, queued or begun."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Literal

from msgspec.structs import replace

from agent_core.events import Delivery, InjectedBy, InputSource, QueueItem
from agent_core.kernel import ItemId, MessageId, QueueId, RunId
from agent_core.kernel.errors import QueueStale, RunMismatch, RunNotActive, SessionBusy, UsageError
from agent_core.kernel.values import Value
from agent_core.loop import UserInput
from agent_core.messages import CustomMessage, Text, UserContent
from agent_core.session.context import SessionServices
from agent_core.session.history.entries import (
    added_entry,
    edited_queue_entry,
    prompt_entries,
    queued_entry,
    unqueued_entries,
)
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.commands import SlashCommands
from agent_core.session.input.deferred_messages import DeferredMessages, FlushPoint, publish_added
from agent_core.session.input.queue import (
    InputQueue,
    MessageIndex,
    QueueEdited,
    QueueOp,
    Replace,
    SendNow,
    check_content,
)
from agent_core.session.model_selection import ModelSelection, check_sent
from agent_core.session.runs.executor import RunInput, RunStarter
from agent_core.session.runs.slot import TITLES, Activity, ActivitySlot

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

    def __init__(
        self,
        services: SessionServices,
        *,
        recorder: Recorder,
        queue: InputQueue,
        message_index: MessageIndex,
        deferred: DeferredMessages,
        commands: SlashCommands,
        models: ModelSelection,
        runs: ActivitySlot,
        starter: RunStarter,
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._queue = queue
        self._message_index = message_index
        self._deferred = deferred
        self._commands = commands
        self._models = models
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
        # Before all checks: what they find holds until the session is reserved.
        blocks = await stored_images(_content(content), self._recorder)
        self._starter.check_open()
        if message_id is not None and await self._message_index.is_recorded(message_id):
            return self._duplicate(message_id)
        precondition = _Precondition(expected_run=expected_run, if_idle=if_idle, source=source)
        self._check_run(precondition)
        if source == "person" and self._commands.start(blocks):
            return self._handled(message_id)
        check_sent(self._models, blocks)
        current = self._runs.current
        if current is None:
            if if_idle == "reject":
                raise RunNotActive(NOTHING_RUNS)
            if if_idle == "start":
                step = self._reserve_start(blocks, message_id, source=source)
                return await self._recorder.background.shielded(step)
            self._queue.paused = True
            waits: Delivery = "steer" if delivery == "steer" else "followUp"
            return await self._enqueue(blocks, waits, message_id, "held", precondition=precondition)
        if delivery == "reject" or (delivery is None and current.kind == "run"):
            raise SessionBusy(_busy(current))
        if current.kind != "run" or delivery == "followUp":
            return await self._enqueue(
                blocks, "followUp", message_id, "queued", precondition=precondition
            )
        return await self._enqueue(
            blocks, "steer", message_id, "steered", precondition=precondition
        )

    async def add(
        self, content: str | Sequence[UserContent], *, mark: InjectedBy, delivery: AddDelivery
    ) -> Receipt:
        """Accept a message of a program, as `AgentSession.add` describes."""
        self._starter.check_open()
        if not mark.custom_type.strip():
            message = f"custom_type is {mark.custom_type!r}; say what kind of words these are"
            raise UsageError(message)
        blocks = await stored_images(_content(content), self._recorder)
        self._starter.check_open()
        current = self._runs.current
        if delivery == "nextTurn":
            return await self._defer(blocks, mark, flush_at="prompt")
        if delivery == "append":
            if current is None:
                return await self._append(blocks, mark)
            return await self._defer(blocks, mark, flush_at="turn")
        if current is None:
            step = self._reserve_start(blocks, None, mark)
            return await self._recorder.background.shielded(step)
        if delivery == "steer" and current.kind == "run":
            return await self._enqueue(blocks, "steer", None, "steered", mark=mark)
        return await self._enqueue(blocks, "followUp", None, "queued", mark=mark)

    async def _append(self, content: tuple[UserContent, ...], mark: InjectedBy) -> Receipt:
        message = _custom(content, mark, at_ms=self._services.clock.now_ms())
        seq = self._services.publisher.feed.seq
        entry = await self._recorder.accept(added_entry(message))
        publish_added(
            message,
            run=None,
            item=ItemId(self._services.new_id()),
            entry=entry,
            delivery=None,
            publish=self._services.publish,
        )
        return Receipt(accepted="added", run=None, seq=seq)

    async def _defer(
        self, content: tuple[UserContent, ...], mark: InjectedBy, *, flush_at: FlushPoint
    ) -> Receipt:
        message = _custom(content, mark, at_ms=self._services.clock.now_ms())
        current = self._runs.current
        seq = self._services.publisher.feed.seq
        await self._deferred.accept(message, flush_at=flush_at)
        return Receipt(accepted="held", run=current.run if current else None, seq=seq)

    def _check_run(self, precondition: _Precondition) -> None:
        current = self._runs.current
        running = current.run if current else None
        if precondition.expected_run is not None and running != precondition.expected_run:
            message = f"run {precondition.expected_run!r} was expected, but {running!r} is going on; look at the session first"
            raise RunMismatch(message)

    def _reserve_start(
        self,
        content: tuple[UserContent, ...],
        message_id: MessageId | None,
        mark: InjectedBy | None = None,
        *,
        source: InputSource = "person",
    ) -> Callable[[], Awaitable[Receipt]]:
        """Reserve the session for a run; return the step that writes its prompt and starts it."""
        user_input = UserInput(
            content=content, delivery="prompt", message_id=message_id, custom=mark, source=source
        )
        activity, run = self._starter.reserve()
        self._message_index.begin(message_id)
        return partial(self._write_and_start, activity, run, user_input)

    async def _write_and_start(
        self, activity: Activity, run: RunId, user_input: UserInput
    ) -> Receipt:
        message_id = user_input.message_id
        try:
            entry = await self._recorder.accept(*prompt_entries(user_input, run))
            self._message_index.record(message_id, run)
        except BaseException:
            self._runs.release(activity)
            raise
        finally:
            self._message_index.end(message_id)
        self._queue.release()
        self._starter.start(activity, run, (RunInput(user_input=user_input, entry=entry),))
        return Receipt(accepted="started", run=run, seq=self._services.publisher.feed.seq)

    async def _enqueue(
        self,
        content: tuple[UserContent, ...],
        delivery: Delivery,
        message_id: MessageId | None,
        accepted: AcceptedAs,
        *,
        mark: InjectedBy | None = None,
        precondition: _Precondition = NO_PRECONDITION,
    ) -> Receipt:
        self._queue.reserve_slot()
        self._message_index.begin(message_id)
        current = self._runs.current
        item = QueueItem(
            queue_id=QueueId(self._services.new_id()),
            delivery=delivery,
            content=content,
            at_ms=self._services.clock.now_ms(),
            custom=mark,
            source=precondition.source,
        )
        step = partial(self._write_and_put, item, message_id, accepted, current, precondition)
        return await self._recorder.background.shielded(step)

    async def _write_and_put(
        self,
        item: QueueItem,
        message_id: MessageId | None,
        accepted: AcceptedAs,
        current: Activity | None,
        precondition: _Precondition,
    ) -> Receipt:
        """Write a message, put it into the queue, and start a run with it if the session has become idle."""
        run = current.run if current else None
        try:
            _ = await self._recorder.accept(queued_entry(item, message_id, run))
            if self._is_too_late(current, precondition):
                _ = await self._recorder.keep(*unqueued_entries([item], "refused"))
                if precondition.expected_run is None:
                    raise RunNotActive(NOTHING_RUNS)
                message = f"run {run!r} ended while the words for it were written; look at the session first"
                raise RunMismatch(message)
            self._message_index.record(message_id, run)
            self._queue.put(item, message_id)
        finally:
            self._queue.release_slot()
            self._message_index.end(message_id)
        seq = self._services.publisher.feed.seq
        if item.custom is None:
            self._queue.publish()
        self._starter.go_on()
        return self._queued_receipt(item, accepted, before=current, seq=seq)

    def _is_too_late(self, current: Activity | None, precondition: _Precondition) -> bool:
        """Return whether what words were meant for ended while they were being written, and they must not begin a run."""
        goes_on = self._runs.current is current
        if current is None or (goes_on and not current.scope.cancel_called):
            return False
        if precondition.if_idle == "hold" and self._runs.current is None:
            self._queue.paused = True
        return precondition.expected_run is not None or precondition.if_idle == "reject"

    def _queued_receipt(
        self, item: QueueItem, accepted: AcceptedAs, *, before: Activity | None, seq: int
    ) -> Receipt:
        """Return what became of words that were put: the run that they were meant for may be over."""
        current = self._runs.current
        latest = current or before
        run = latest.run if latest else None
        waits = self._queue.waits(item.queue_id)
        if waits and self._queue.paused:
            accepted = "held"
        elif current is not before and not waits:
            accepted = "started"
        return Receipt(accepted=accepted, run=run, queue_id=item.queue_id, seq=seq)

    def _handled(self, message_id: MessageId | None) -> Receipt:
        """Report that a command runs: it is no part of the conversation, unless it says something itself."""
        self._message_index.record(message_id, None)
        return Receipt(accepted="handled", run=None, seq=self._services.publisher.feed.seq)

    def _duplicate(self, message_id: MessageId) -> Receipt:
        return Receipt(
            accepted="duplicate",
            run=self._message_index.run_of(message_id),
            queue_id=self._queue.queue_id_of(message_id),
            seq=self._services.publisher.feed.seq,
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


async def stored_images(
    content: tuple[UserContent, ...], recorder: Recorder
) -> tuple[UserContent, ...]:
    """Return content with its images and files stored; raises as `stored_prompt`."""
    if all(isinstance(part, Text) for part in content):
        return content
    from agent_core.session.attachments import stored_prompt  # noqa: PLC0415 - at first use

    return await stored_prompt(content, recorder.attachments)


class QueueView:
    """View of the queued messages, and their edits while a run takes messages from the queue."""

    def __init__(
        self,
        queue: InputQueue,
        *,
        recorder: Recorder,
        models: ModelSelection,
        starter: RunStarter,
    ) -> None:
        self._queue = queue
        self._recorder = recorder
        self._models = models
        self._starter = starter

    @property
    def items(self) -> tuple[QueueItem, ...]:
        """The user's words that wait, in the order in which they will be said."""
        return self._queue.items()

    @property
    def paused(self) -> bool:
        """Whether they wait for the next prompt, or until one of them is sent."""
        return self._queue.paused

    @property
    def changed_seq(self) -> int:
        """The event that told the newest change."""
        return self._queue.changed_seq

    async def edit(
        self, ops: Sequence[QueueOp], *, if_seq: int | None = None
    ) -> tuple[QueueItem, ...]:
        """Change what waits, all of it or nothing; gives what waits now.

        Args:
            ops: One after the other. `SendNow` also ends a pause.
            if_seq: Refuse when the queue changed after this event.

        Raises:
            QueueStale: The queue is not what the caller saw; nothing changed.
            UsageError: Words would be replaced by none; nothing changed.
            ImagesUnsupported: Words would be replaced by images that the model is not sent; nothing changed.
            FilesUnsupported: Words would be replaced by PDF files that it is not sent; nothing changed.
        """
        queue = self._queue
        ops = [
            replace(op, content=await stored_images(op.content, self._recorder))
            if isinstance(op, Replace)
            else op
            for op in ops
        ]
        self._starter.check_open()
        if if_seq is not None and queue.changed_seq > if_seq:
            message = f"the queue changed with event {queue.changed_seq}, after event {if_seq}; look at it again"
            raise QueueStale(message)
        for op in ops:
            if isinstance(op, Replace):
                check_sent(self._models, op.content)
        edited = queue.edit(ops)
        if any(isinstance(op, SendNow) for op in ops):
            queue.paused = False
        return await self._recorder.background.shielded(partial(self._keep, edited))

    async def _keep(self, edited: QueueEdited) -> tuple[QueueItem, ...]:
        entry = edited_queue_entry(edited.items, replaced=edited.replaced, removed=edited.removed)
        _ = await self._recorder.keep(entry)
        self._queue.publish()
        self._starter.go_on()
        return self._queue.items()
