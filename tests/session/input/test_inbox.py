"""Words that wait: their order, how many are taken at once, the bound."""

import anyio
import pytest

from agent_core.events import Delivery, EventFeed, QueueItem, QueueMode
from agent_core.kernel import MessageId, QueueId
from agent_core.kernel.errors import QueueFull
from agent_core.loop import UserInput
from agent_core.messages import Text
from agent_core.session.context import EventPublisher
from agent_core.session.input.queue import QUEUE_LIMIT, InputQueue, contents
from tests.support.harness.clock import FakeClock


def item(name: str, delivery: Delivery = "steer") -> QueueItem:
    return QueueItem(queue_id=QueueId(name), delivery=delivery, content=(Text(text=name),), at_ms=0)


def words(name: str, delivery: Delivery = "steer", message_id: str | None = None) -> UserInput:
    return UserInput(
        content=(Text(text=name),),
        delivery=delivery,
        message_id=MessageId(message_id) if message_id else None,
        queue_id=QueueId(name),
    )


def publisher() -> EventPublisher:
    return EventPublisher(feed=EventFeed(FakeClock()))


def inbox(
    *items: QueueItem, steering: QueueMode = "one-at-a-time", follow_up: QueueMode = "all"
) -> InputQueue:
    box = InputQueue(publisher(), steering=steering, follow_up=follow_up)
    for one in items:
        box.put(one, None)
    return box


def test_steering_comes_before_follow_ups_and_each_in_its_order() -> None:
    box = inbox(item("f1", "followUp"), item("s1"), item("f2", "followUp"), item("s2"))
    assert [one.queue_id for one in box.items()] == ["s1", "s2", "f1", "f2"]
    assert box.take_next() == (words("s1"),)
    assert box.take_next() == (words("s2"),)
    assert box.take_next() == (words("f1", "followUp"), words("f2", "followUp"))
    assert box.take_next() == ()
    assert (box.has_steering(), box.has_follow_ups()) == (False, False)


def test_a_mode_counts_from_the_next_take() -> None:
    box = inbox(item("a"), item("b"), item("c"))
    assert box.take_steering() == (words("a"),)
    box.steering_mode = "all"
    assert box.take_steering() == (words("b"), words("c"))


def test_words_carry_the_id_that_the_client_gave_them() -> None:
    box = inbox()
    box.put(item("a"), MessageId("m1"))
    assert box.take_steering() == (words("a", message_id="m1"),)


def test_draining_takes_everything_and_gives_it_back() -> None:
    box = inbox(item("a"), item("f", "followUp"))
    assert contents(box.drain()) == ((Text(text="a"),), (Text(text="f"),))
    assert (box.items(), box.drain()) == ((), ())


def test_the_queue_has_a_bound() -> None:
    box = inbox(*(item(str(number)) for number in range(QUEUE_LIMIT - 1)))
    box.check_room()
    box.put(item("last", "followUp"), None)
    with pytest.raises(QueueFull, match="32 messages wait already"):
        box.check_room()
    box.take_steering()
    box.check_room()


async def test_waiting_for_steering_ends_with_steering_alone() -> None:
    box = inbox(item("f", "followUp"))
    heard = anyio.Event()

    async def listen() -> None:
        await box.wait_for_steering()
        heard.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await anyio.wait_all_tasks_blocked()
            box.put(item("g", "followUp"), None)
            await anyio.wait_all_tasks_blocked()
            assert not heard.is_set()
            box.put(item("s"), None)
        await box.wait_for_steering()


async def test_steering_that_was_taken_is_not_waited_for_again() -> None:
    box = inbox(item("s"))
    box.take_steering()
    with anyio.move_on_after(0.01) as scope:
        await box.wait_for_steering()
    assert scope.cancelled_caught
    box.put(item("t"), None)
    box.drain()
    with anyio.move_on_after(0.01) as scope:
        await box.wait_for_steering()
    assert scope.cancelled_caught


async def test_what_cannot_be_sent_stays_at_its_place_and_wakes_nobody() -> None:
    blocked = {"b"}
    box = InputQueue(
        publisher(),
        steering="all",
        follow_up="all",
        may_go=lambda one: str(one.queue_id) not in blocked,
    )
    for one in (item("a"), item("b"), item("c"), item("d", "followUp")):
        box.put(one, None)
    assert box.take_steering() == (words("a"),)
    assert (box.has_steering(), box.take_steering(), box.take_next()) == (False, (), ())
    assert [one.queue_id for one in box.held_back()] == ["b"]
    with anyio.move_on_after(0.01) as waited:
        await box.wait_for_steering()
    assert waited.cancelled_caught
    blocked.clear()
    assert box.take_next() == (words("b"), words("c"))
    assert box.take_next() == (words("d", "followUp"),)
