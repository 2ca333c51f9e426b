"""Edits of queued messages by clients: pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from agent_core.events import QueueItem
from agent_core.kernel import QueueId
from agent_core.kernel.errors import QueueStale, UsageError
from agent_core.kernel.values import Value
from agent_core.messages import Text, UserContent

EMPTY = "the prompt is empty; say something"


class Remove(Value, frozen=True, kw_only=True):
    """Removal of a queued message, which is not delivered."""

    queue_id: QueueId


class Replace(Value, frozen=True, kw_only=True):
    """Replacement of the content of a queued message."""

    queue_id: QueueId
    content: tuple[UserContent, ...]


class Move(Value, frozen=True, kw_only=True):
    """Move of a queued message to the nearest place that keeps steering before follow-ups."""

    queue_id: QueueId
    index: int
    """Counted from 0 over all that people see of the queue."""


class SendNow(Value, frozen=True, kw_only=True):
    """Delivery of a queued message before all others: at once if the session is idle, else inside the run."""

    queue_id: QueueId


class Steer(Value, frozen=True, kw_only=True):
    """Delivery of a queued message inside the run, after the other steering messages."""

    queue_id: QueueId


QueueOp = Remove | Replace | Move | SendNow | Steer


class QueueEdited(Value, frozen=True, kw_only=True):
    """The queue after a change."""

    items: tuple[QueueItem, ...]
    """All that waits, of programs too: first what steers."""
    removed: tuple[QueueId, ...]
    replaced: frozenset[QueueId]


def edit_queue(items: Sequence[QueueItem], ops: Sequence[QueueOp]) -> QueueEdited:
    """Edit a queue, one operation after the other; all of them or none.

    Args:
        items: All queued messages, also those of programs, which clients neither see nor change.
        ops: The operations, in order.

    Raises:
        QueueStale: A named message is not queued any more.
        UsageError: A message would be replaced by an empty one.
    """
    waiting = list(items)
    removed: list[QueueId] = []
    replaced: set[QueueId] = set()
    sent = 0
    for op in ops:
        place = _place(waiting, op.queue_id)
        item = waiting.pop(place)
        match op:
            case Remove(queue_id=queue_id):
                removed.append(queue_id)
                replaced.discard(queue_id)
            case Replace(queue_id=queue_id, content=content):
                check_content(content)
                waiting.insert(place, replace(item, content=content))
                replaced.add(queue_id)
            case Move(index=index):
                waiting.insert(_target(waiting, item, index), item)
            case SendNow():
                waiting.insert(sent, replace(item, delivery="steer"))
                sent += 1
            case Steer():
                waiting.insert(_steering(waiting), replace(item, delivery="steer"))
    return QueueEdited(items=tuple(waiting), removed=tuple(removed), replaced=frozenset(replaced))


def check_content(content: Sequence[UserContent]) -> None:
    """Check that a message has content.

    Raises:
        UsageError: The message is empty.
    """
    if not any(not isinstance(part, Text) or part.text.strip() for part in content):
        raise UsageError(EMPTY)


def _place(waiting: Sequence[QueueItem], queue_id: QueueId) -> int:
    for place, item in enumerate(waiting):
        if item.queue_id == queue_id and item.custom is None:
            return place
    message = (
        f"no words wait under the queue id {queue_id!r}: they were said, returned or dropped meanwhile; "
        "look at the queue again"
    )
    raise QueueStale(message)


def _steering(waiting: Sequence[QueueItem]) -> int:
    return sum(item.delivery == "steer" for item in waiting)


def _target(waiting: Sequence[QueueItem], item: QueueItem, index: int) -> int:
    """Return the place at which an item is the index-th that people see, within its own kind of delivery."""
    seen = 0
    place = len(waiting)
    for at, one in enumerate(waiting):
        if seen == index:
            place = at
            break
        seen += one.custom is None
    border = _steering(waiting)
    return min(place, border) if item.delivery == "steer" else max(place, border)
