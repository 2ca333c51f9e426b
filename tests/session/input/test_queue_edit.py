"""What a client may change of words that wait: a pure function from a queue to a queue."""

import pytest

from agent_core.events import Delivery, InjectedBy, QueueItem
from agent_core.kernel import QueueId
from agent_core.kernel.errors import QueueStale, UsageError
from agent_core.messages import Text
from agent_core.session.input.queue import (
    Move,
    QueueOp,
    Remove,
    Replace,
    SendNow,
    Steer,
    edit_queue,
)


def item(name: str, *, custom: bool = False) -> QueueItem:
    """Make words that wait: those whose name begins with an `s` steer."""
    delivery: Delivery = "steer" if name.startswith("s") else "followUp"
    mark = InjectedBy(custom_type="test") if custom else None
    content = (Text(text=name),)
    return QueueItem(
        queue_id=QueueId(name), delivery=delivery, content=content, at_ms=0, custom=mark
    )


QUEUE = (item("s1"), item("s2"), item("f1"), item("f2"), item("f3"))


def shape(items: tuple[QueueItem, ...]) -> str:
    """Give a queue as a line: those that steer, a bar, the others."""
    steering = [one.queue_id for one in items if one.delivery == "steer"]
    others = [one.queue_id for one in items if one.delivery != "steer"]
    return " ".join([*steering, "|", *others])


def q(name: str) -> QueueId:
    return QueueId(name)


@pytest.mark.parametrize(
    ("ops", "after"),
    [
        pytest.param([Remove(queue_id=q("s1"))], "s2 | f1 f2 f3", id="remove"),
        pytest.param([Move(queue_id=q("f3"), index=2)], "s1 s2 | f3 f1 f2", id="move to the front"),
        pytest.param([Move(queue_id=q("f1"), index=4)], "s1 s2 | f2 f3 f1", id="move to the end"),
        pytest.param(
            [Move(queue_id=q("f2"), index=0)], "s1 s2 | f2 f1 f3", id="not before steering"
        ),
        pytest.param(
            [Move(queue_id=q("s1"), index=9)], "s2 s1 | f1 f2 f3", id="not behind follow-ups"
        ),
        pytest.param(
            [Move(queue_id=q("f2"), index=3)], "s1 s2 | f1 f2 f3", id="move to where it is"
        ),
        pytest.param([Steer(queue_id=q("f2"))], "s1 s2 f2 | f1 f3", id="steer"),
        pytest.param([SendNow(queue_id=q("f2"))], "f2 s1 s2 | f1 f3", id="send now"),
        pytest.param(
            [SendNow(queue_id=q("f2")), SendNow(queue_id=q("f1"))],
            "f2 f1 s1 s2 | f3",
            id="send two",
        ),
        pytest.param(
            [Remove(queue_id=q("f1")), Steer(queue_id=q("f3")), Move(queue_id=q("f3"), index=0)],
            "f3 s1 s2 | f2",
            id="several",
        ),
        pytest.param([], "s1 s2 | f1 f2 f3", id="nothing"),
    ],
)
def test_a_queue_is_changed_as_asked(ops: list[QueueOp], after: str) -> None:
    assert shape(edit_queue(QUEUE, ops).items) == after


def test_words_are_replaced_where_they_wait() -> None:
    other = (Text(text="other"),)
    edited = edit_queue(QUEUE, [Replace(queue_id=q("f1"), content=other)])
    assert shape(edited.items) == "s1 s2 | f1 f2 f3"
    assert edited.items[2].content == other
    assert edited.replaced == {"f1"}


def test_words_that_were_replaced_and_removed_are_only_removed() -> None:
    other = (Text(text="other"),)
    ops: list[QueueOp] = [Replace(queue_id=q("f1"), content=other), Remove(queue_id=q("f1"))]
    edited = edit_queue(QUEUE, ops)
    assert (edited.removed, edited.replaced) == (("f1",), frozenset())


@pytest.mark.parametrize(
    "ops",
    [
        [Remove(queue_id=q("gone"))],
        [Remove(queue_id=q("s1")), Steer(queue_id=q("s1"))],
        [SendNow(queue_id=q("program"))],
    ],
    ids=["never there", "removed before", "a program's"],
)
def test_words_that_wait_no_longer_are_named(ops: list[QueueOp]) -> None:
    with pytest.raises(QueueStale, match=f"'{ops[-1].queue_id}'"):
        edit_queue((*QUEUE, item("program", custom=True)), ops)


def test_words_cannot_be_replaced_by_none() -> None:
    with pytest.raises(UsageError, match="empty"):
        edit_queue(QUEUE, [Replace(queue_id=q("f1"), content=(Text(text=" "),))])


def test_places_are_counted_over_what_people_see() -> None:
    queue = (item("f0", custom=True), item("f1"), item("f2"))
    assert shape(edit_queue(queue, [Move(queue_id=q("f2"), index=0)]).items) == "| f2 f0 f1"
    assert shape(edit_queue(queue, [Move(queue_id=q("f1"), index=1)]).items) == "| f0 f2 f1"
