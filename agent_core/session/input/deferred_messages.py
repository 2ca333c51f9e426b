"""Deferred messages: each enters the transcript when it is due, never between a call and its result."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Literal

import anyio

from agent_core.events import Delivery, Event, MessageEnded, MessageStarted
from agent_core.kernel import EntryId, ItemId, RunId
from agent_core.kernel.values import Value
from agent_core.messages import BashMessage, CustomMessage
from agent_core.session.history.entries import (
    EntryFactory,
    added_entry,
    deferred_entry,
    flushed_entry,
    message_entry,
)
from agent_core.session.history.recorder import Recorder

FlushPoint = Literal["turn", "run", "prompt"]
"""How long something lies aside: to the end of a turn, to the end of the run, to the user's next prompt."""
PublishEvent = Callable[[Event], object]


class DeferredMessage(Value, frozen=True, kw_only=True):
    """Something that lies aside."""

    deferred_id: str
    flush_at: FlushPoint
    message: CustomMessage | BashMessage


class DeferredMessages:
    """Keeps what lies aside: in the file at once, in the conversation when its time has come."""

    def __init__(self, recorder: Recorder, *, new_id: Callable[[], str]) -> None:
        self._recorder = recorder
        self._new_id = new_id
        self._messages: list[DeferredMessage] = []
        self._unwritten: dict[str, anyio.Event] = {}
        """Set when a message is in the file, or cannot be; by its id."""

    def put(self, deferred: DeferredMessage) -> None:
        """Add a deferred message that is already in the session file."""
        self._messages.append(deferred)

    async def accept(
        self, message: CustomMessage, *, flush_at: FlushPoint, beside: Sequence[EntryFactory] = ()
    ) -> None:
        """Lay words aside.

        Args:
            message: The words.
            flush_at: When they enter the conversation.
            beside: Entries that are written with them, in one step.

        Raises:
            StorageError: They are not in the file, and nothing of them is kept.
        """
        deferred = DeferredMessage(deferred_id=self._new_id(), flush_at=flush_at, message=message)
        with self._being_written(deferred):
            try:
                _ = await self._recorder.accept(
                    deferred_entry(deferred.deferred_id, flush_at, message), *beside
                )
            except BaseException:
                self._messages = [one for one in self._messages if one is not deferred]
                raise

    async def keep(
        self,
        message: BashMessage | CustomMessage,
        *,
        flush_at: FlushPoint,
        beside: Sequence[EntryFactory] = (),
    ) -> None:
        """Lay something aside that has happened, whatever the disk says.

        Args:
            message: The message.
            flush_at: When it enters the conversation.
            beside: Entries that are written with it, in one step.
        """
        deferred = DeferredMessage(deferred_id=self._new_id(), flush_at=flush_at, message=message)
        entry = deferred_entry(deferred.deferred_id, flush_at, message)
        with self._being_written(deferred):
            _ = await self._recorder.keep(entry, *beside)

    @contextmanager
    def _being_written(self, deferred: DeferredMessage) -> Generator[None]:
        """Add a message before it is written: its moment may come while the disk works, and would not come again soon."""
        over = self._unwritten[deferred.deferred_id] = anyio.Event()
        self._messages.append(deferred)
        try:
            yield
        finally:
            del self._unwritten[deferred.deferred_id]
            over.set()

    async def flush(self, *points: FlushPoint, run: RunId | None, publish: PublishEvent) -> None:
        """Move the deferred messages that are due into the conversation, in the order in which they were deferred.

        On return none is due any more, including messages that were deferred meanwhile.
        """
        while deferred := next((one for one in self._messages if one.flush_at in points), None):
            if (unwritten := self._unwritten.get(deferred.deferred_id)) is not None:
                # In the file it stands before the note that it was delivered, or it would be delivered again.
                await unwritten.wait()
                continue
            self._messages.remove(deferred)
            message = deferred.message
            draft = (
                added_entry(message)
                if isinstance(message, CustomMessage)
                else message_entry(message)
            )
            entry = await self._recorder.keep(draft, flushed_entry(deferred.deferred_id))
            if isinstance(message, CustomMessage):
                publish_added(
                    message,
                    run=run,
                    item=ItemId(self._new_id()),
                    entry=entry,
                    delivery="nextTurn" if deferred.flush_at == "prompt" else None,
                    publish=publish,
                )


def publish_added(
    message: CustomMessage,
    *,
    run: RunId | None,
    item: ItemId,
    entry: EntryId,
    delivery: Delivery | None,
    publish: PublishEvent,
) -> None:
    """Report that a program's words are in the conversation now, if people are to see them."""
    if not message.display:
        return
    _ = publish(MessageStarted(run=run, turn=None, item=item, role="custom"))
    _ = publish(
        MessageEnded(
            run=run,
            turn=None,
            item=item,
            role="custom",
            content=message.content,
            custom_type=message.custom_type,
            delivery=delivery,
            entry=entry,
        )
    )
