"""`session.queue`: words that wait."""

from collections.abc import Sequence
from functools import partial

from agent_core.events import QueueItem
from agent_core.kernel.errors import QueueStale
from agent_core.session.context import SessionContext
from agent_core.session.history.entries import edited_queue_entry
from agent_core.session.input.queue_edit import QueueEdited, QueueOp, Replace, SendNow
from agent_core.session.input.queue_events import publish_queue
from agent_core.session.model_selection import check_images
from agent_core.session.runs.starter import RunStarter


class QueueView:
    """View of the queued messages, and their edits while a run takes messages from the queue."""

    def __init__(self, parts: SessionContext, starter: RunStarter) -> None:
        self._parts = parts
        self._starter = starter

    @property
    def items(self) -> tuple[QueueItem, ...]:
        """The user's words that wait, in the order in which they will be said."""
        return self._parts.inbox.items()

    @property
    def paused(self) -> bool:
        """Whether they wait for the next prompt, or until one of them is sent."""
        return self._parts.inbox.paused

    @property
    def changed_seq(self) -> int:
        """The event that told the newest change."""
        return self._parts.inbox.changed_seq

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
        """
        parts = self._parts
        inbox = parts.inbox
        self._starter.check_open()
        if if_seq is not None and inbox.changed_seq > if_seq:
            message = f"the queue changed with event {inbox.changed_seq}, after event {if_seq}; look at it again"
            raise QueueStale(message)
        for op in ops:
            if isinstance(op, Replace):
                check_images(parts.models, op.content)
        edited = inbox.edit(ops)
        if any(isinstance(op, SendNow) for op in ops):
            inbox.paused = False
        await parts.recorder.background.shielded(
            partial(self._keep, edited), then=self._starter.go_on
        )
        return inbox.items()

    async def _keep(self, edited: QueueEdited) -> None:
        parts = self._parts
        entry = edited_queue_entry(edited.items, replaced=edited.replaced, removed=edited.removed)
        _ = await parts.recorder.keep(entry)
        publish_queue(parts)
