"""The queue of prompts that wait for a run: filled, edited, shown and delivered."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

import anyio
from msgspec.structs import replace

from agent_core.events import Notice, QueueChanged, QueueItem, QueueMode
from agent_core.kernel import MessageId, QueueId, RunId
from agent_core.kernel.errors import QueueFull, QueueStale, UsageError
from agent_core.kernel.values import Value
from agent_core.loop import UserInput
from agent_core.messages import Text, UserContent
from agent_core.session.context import EventPublisher
from agent_core.session.model_selection import ModelSelection, why_unsent

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


QUEUE_LIMIT = 32


class InputQueue:  # noqa: PLR0904 - both ends of two queues
    """Both queues. The face puts, the loop takes; both on the loop's thread, without waiting.

    A change is published with the number of its event, so that clients can edit the queue that they see.
    """

    def __init__(
        self,
        publisher: EventPublisher,
        *,
        steering: QueueMode,
        follow_up: QueueMode,
        may_go: Callable[[QueueItem], bool] = lambda _: True,
    ) -> None:
        """Create two empty queues.

        Args:
            publisher: Publisher of the session's events.
            steering: How many steering words are taken at a time.
            follow_up: How many follow-ups are.
            may_go: Whether an item can be sent now; one that cannot stays, and those behind it wait.
        """
        self._publisher = publisher
        self._may_go = may_go
        self.steering_mode: QueueMode = steering
        self.follow_up_mode: QueueMode = follow_up
        self.paused = False
        """The queue stays where it is until the next prompt: a run was cancelled or failed while words waited."""
        self._steering: deque[QueueItem] = deque()
        self._follow_ups: deque[QueueItem] = deque()
        self._message_ids: dict[QueueId, MessageId | None] = {}
        self._reserved = 0
        self._steering_signal = anyio.Event()
        self.changed_seq = 0
        """The event that told the newest change."""

    def reserve_slot(self) -> None:
        """Keep a place for words that are being written; say `expected` when that is over.

        Raises:
            QueueFull: Too many wait already.
        """
        self.check_room()
        self._reserved += 1

    def release_slot(self) -> None:
        """Release a reserved place: its message was added, or could not be written."""
        self._reserved -= 1

    def put(self, item: QueueItem, message_id: MessageId | None) -> None:
        """Add a message to its queue; a `steer` message wakes `wait_for_steering`."""
        self._message_ids[item.queue_id] = message_id
        if item.delivery == "steer":
            self._steering.append(item)
            self._steering_signal.set()
        else:
            self._follow_ups.append(item)

    def check_room(self) -> None:
        """Raise when no more words may wait.

        Raises:
            QueueFull: Too many wait already.
        """
        waiting = len(self._steering) + len(self._follow_ups) + self._reserved
        if waiting >= QUEUE_LIMIT:
            way = (
                "the queue is paused: send or remove some of them first"
                if self.paused
                else "wait for the run or cancel it"
            )
            message = f"{waiting} messages wait already, which is the limit; {way}"
            raise QueueFull(message, passes=not self.paused)

    def take_steering(self) -> tuple[UserInput, ...]:
        """Remove and return the oldest steering message, or all of them, by mode."""
        taken = self._take(self._steering, self.steering_mode)
        self._reset_signal()
        return taken

    def take_follow_ups(self) -> tuple[UserInput, ...]:
        """Remove and return the oldest follow-up, or all of them, by mode."""
        return self._take(self._follow_ups, self.follow_up_mode)

    def take_next(self) -> tuple[UserInput, ...]:
        """Remove and return the messages that open a new run: steering before follow-ups."""
        return self.take_steering() if self._steering else self.take_follow_ups()

    def has_steering(self) -> bool:
        """Return whether steering words wait that can be sent."""
        return bool(self._steering) and self._may_go(self._steering[0])

    def has_follow_ups(self) -> bool:
        """Return whether follow-ups wait that can be sent."""
        return bool(self._follow_ups) and self._may_go(self._follow_ups[0])

    def held_back(self) -> tuple[QueueItem, ...]:
        """Return what waits and cannot be sent now."""
        return tuple(one for one in self.items() if not self._may_go(one))

    async def wait_for_steering(self) -> None:
        """Wait until steering words wait that can be sent."""
        while not self.has_steering():
            self._reset_signal()
            await self._steering_signal.wait()

    def is_empty(self) -> bool:
        """Return whether nothing waits or is about to, of the user or of a program."""
        return not self._steering and not self._follow_ups and not self._reserved

    def queue_id_of(self, message_id: MessageId) -> QueueId | None:
        """Return the place in the queue of a client's message; None: it does not wait."""
        return next(
            (one for one, waiting_id in self._message_ids.items() if waiting_id == message_id), None
        )

    def waits(self, queue_id: QueueId) -> bool:
        """Return whether words wait still."""
        return any(item.queue_id == queue_id for item in (*self._steering, *self._follow_ups))

    def edit(self, ops: Sequence[QueueOp]) -> QueueEdited:
        """Change what waits, as `edit_queue` says."""
        edited = edit_queue((*self._steering, *self._follow_ups), ops)
        self._steering = deque(one for one in edited.items if one.delivery == "steer")
        self._follow_ups = deque(one for one in edited.items if one.delivery != "steer")
        for queue_id in edited.removed:
            _ = self._message_ids.pop(queue_id, None)
        if self._steering:
            self._steering_signal.set()
        self._reset_signal()
        return edited

    def items(self) -> tuple[QueueItem, ...]:
        """Show what waits of the user's words, in the order in which it will be said."""
        return tuple(item for item in (*self._steering, *self._follow_ups) if item.custom is None)

    def drain(self) -> tuple[QueueItem, ...]:
        """Remove and return the user's messages; those of programs stay."""
        items = self.items()
        for queue in (self._steering, self._follow_ups):
            rest = [item for item in queue if item.custom is not None]
            queue.clear()
            queue.extend(rest)
        self._message_ids.clear()
        self._reset_signal()
        return items

    def publish(self) -> None:
        """Publish the queue as it is now."""
        self._publisher.publish(QueueChanged(queue=self.items(), paused=self.paused))
        self.changed_seq = self._publisher.feed.seq

    def pause(self) -> None:
        """Pause the queue until the next prompt, and publish that; an empty or paused queue stays as it is."""
        if not self.is_empty() and not self.paused:
            self.paused = True
            self.publish()

    def release(self) -> None:
        """Resume a paused queue; publish that if messages of the user wait."""
        if not self.paused:
            return
        self.paused = False
        if self.items():
            self.publish()

    def hold_images(self, models: ModelSelection) -> None:
        """Pause the queue and publish a notice when images or files wait in it that the model in force is not sent."""
        held = self.held_back()
        if not held:
            return
        content = [part for item in held for part in item.content]
        what, why, remedy = why_unsent(models, content)
        count = "1 queued message has" if len(held) == 1 else f"{len(held)} queued messages have"
        text = (
            f"{count} {what}, which are not sent to {models.ref}: {why}. The queue is paused. "
            f"Remove the {what}, or {remedy}; then send the queue."
        )
        self.pause()
        self._publisher.publish(Notice(level="warning", text=text))

    def _reset_signal(self) -> None:
        """Reset the steering signal for later waiters; a task that waits already keeps the event that will be set."""
        if not self.has_steering() and self._steering_signal.is_set():
            self._steering_signal = anyio.Event()

    def _take(self, queue: deque[QueueItem], mode: QueueMode) -> tuple[UserInput, ...]:
        ready = sum(1 for _ in takewhile(self._may_go, queue))
        count = ready if mode == "all" else min(1, ready)
        return tuple(self._to_input(queue.popleft()) for _ in range(count))

    def _to_input(self, item: QueueItem) -> UserInput:
        return UserInput(
            content=item.content,
            delivery=item.delivery,
            message_id=self._message_ids.pop(item.queue_id, None),
            queue_id=item.queue_id,
            custom=item.custom,
            source=item.source,
        )


def contents(items: Sequence[QueueItem]) -> tuple[tuple[UserContent, ...], ...]:
    """Return only the words of waiting items."""
    return tuple(item.content for item in items)


class MessageIndex:
    """Registry of the run that each message started or joined; an id is known once the file has its message."""

    def __init__(self, runs: Mapping[MessageId, RunId | None] | None = None) -> None:
        self._runs = dict(runs or {})
        self._arriving: dict[MessageId, anyio.Event] = {}

    def run_of(self, message_id: MessageId) -> RunId | None:
        """Return the run of a message; None: its words wait for one that nobody knows yet."""
        return self._runs.get(message_id)

    async def is_recorded(self, message_id: MessageId | None) -> bool:
        """Return whether a message is known; while its words are being written, wait for the outcome."""
        if message_id is None:
            return False
        while (arriving := self._arriving.get(message_id)) is not None:
            await arriving.wait()
        return message_id in self._runs

    def begin(self, message_id: MessageId | None) -> None:
        """Report that words are about to be written; say `arrived` when that is over, however it went."""
        if message_id is not None:
            self._arriving[message_id] = anyio.Event()

    def end(self, message_id: MessageId | None) -> None:
        """Report that the words are written, after `record`, or could not be."""
        if message_id is not None:
            self._arriving.pop(message_id).set()

    def record(self, message_id: MessageId | None, run: RunId | None) -> None:
        """Record the run that a message began or joined."""
        if message_id is not None:
            self._runs[message_id] = run


def retry_id(run: RunId) -> MessageId:
    """Return the id under which the retry of a run is known: a run is retried once."""
    return MessageId(f"tiller.retry:{run}")
