"""Deferred messages: each enters the transcript when it is due, never between a call and its result."""

from collections.abc import Callable
from typing import Literal

from agent_core.events import Delivery, Event, MessageEnded, MessageStarted
from agent_core.kernel import EntryId, ItemId, RunId
from agent_core.kernel.values import Value
from agent_core.messages import BashMessage, CustomMessage
from agent_core.session.history.entries import (
    added_entry,
    laid_entry,
    message_entry,
    taken_up_entry,
)
from agent_core.session.history.recorder import Recorder

Until = Literal["turn", "run", "prompt"]
"""How long something lies aside: to the end of a turn, to the end of the run, to the user's next prompt."""
Say = Callable[[Event], object]


class Laid(Value, frozen=True, kw_only=True):
    """Something that lies aside."""

    laid_id: str
    until: Until
    message: CustomMessage | BashMessage


class Aside:
    """Keeps what lies aside: in the file at once, in the conversation when its time has come."""

    def __init__(self, recorder: Recorder, *, new_id: Callable[[], str]) -> None:
        self._recorder = recorder
        self._new_id = new_id
        self._laid: list[Laid] = []

    def put(self, laid: Laid) -> None:
        """Add a deferred message that is already in the session file."""
        self._laid.append(laid)

    async def accept(self, message: CustomMessage, *, until: Until) -> None:
        """Lay words aside.

        Raises:
            StorageError: They are not in the file, and nothing of them is kept.
        """
        laid = Laid(laid_id=self._new_id(), until=until, message=message)
        # Before it is written: its moment may come while the disk works, and would not come again soon.
        self._laid.append(laid)
        try:
            _ = await self._recorder.accept(laid_entry(laid.laid_id, until, message))
        except BaseException:
            self._laid = [one for one in self._laid if one is not laid]
            raise

    async def keep(self, message: BashMessage, *, until: Until) -> None:
        """Lay something aside that has happened, whatever the disk says."""
        laid = Laid(laid_id=self._new_id(), until=until, message=message)
        self._laid.append(laid)
        _ = await self._recorder.keep(laid_entry(laid.laid_id, until, message))

    async def take_up(self, *untils: Until, run: RunId | None, say: Say) -> None:
        """Move the deferred messages that are due into the conversation, in the order in which they were deferred.

        On return none is due any more, including messages that were deferred meanwhile.
        """
        while laid := next((one for one in self._laid if one.until in untils), None):
            self._laid.remove(laid)
            message = laid.message
            draft = (
                added_entry(message)
                if isinstance(message, CustomMessage)
                else message_entry(message)
            )
            entry = await self._recorder.keep(draft, taken_up_entry(laid.laid_id))
            if isinstance(message, CustomMessage):
                tell_added(
                    message,
                    run=run,
                    item=ItemId(self._new_id()),
                    entry=entry,
                    delivery="nextTurn" if laid.until == "prompt" else None,
                    say=say,
                )


def tell_added(
    message: CustomMessage,
    *,
    run: RunId | None,
    item: ItemId,
    entry: EntryId,
    delivery: Delivery | None,
    say: Say,
) -> None:
    """Report that a program's words are in the conversation now, if people are to see them."""
    if not message.display:
        return
    _ = say(MessageStarted(run=run, turn=None, item=item, role="custom"))
    _ = say(
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
