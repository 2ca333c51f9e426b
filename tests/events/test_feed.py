"""The feed: one order for everybody, deltas merged without loss, readers that lag are bounded and told."""

import itertools
from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given, strategies as st

from agent_core.events import (
    BashOutput,
    Event,
    EventEnvelope,
    EventFeed,
    EventSubscription,
    MessageDelta,
    Notice,
    ThoughtDelta,
    ToolInputDelta,
    ToolOutputDelta,
)
from agent_core.events.feed import READER_BYTES, READER_EVENTS, merge
from agent_core.kernel import ItemId, RunId, TurnId
from tests.support.harness.clock import FakeClock

RUN, TURN = RunId("r"), TurnId("t")
NOTICE = Notice(level="info", text="look")


def delta(text: str, item: str = "i") -> MessageDelta:
    return MessageDelta(run=RUN, turn=TURN, item=ItemId(item), text=text)


def feed(seq: int = 0) -> EventFeed:
    return EventFeed(FakeClock(), seq=seq)


def shown(taken: Sequence[EventEnvelope]) -> list[tuple[int, int, str]]:
    """Say for each event where its range begins and ends, and what it says."""
    return [(one.first, one.seq, getattr(one.event, "text", "")) for one in taken]


async def test_every_event_is_stamped_with_the_next_number_and_the_time() -> None:
    clock = FakeClock(1_000)
    source = EventFeed(clock, seq=7)
    reader = source.subscribe()
    first = source.publish(NOTICE)
    clock.advance(1.5)
    second = source.publish(NOTICE)
    assert (first, second) == (
        EventEnvelope(seq=8, first=8, at_ms=1_000, event=NOTICE),
        EventEnvelope(seq=9, first=9, at_ms=2_500, event=NOTICE),
    )
    assert await reader.take() == (first, second)
    assert source.seq == 9


async def test_adjacent_deltas_of_one_item_come_as_one_with_their_range() -> None:
    source = feed()
    reader = source.subscribe()
    for event in (delta("a"), delta("b"), delta("c"), NOTICE, delta("d")):
        source.publish(event)
    assert shown(reader.take_now()) == [(1, 3, "abc"), (4, 4, "look"), (5, 5, "d")]


async def test_what_the_users_command_prints_comes_as_one_with_its_range() -> None:
    source = feed()
    reader = source.subscribe()
    for event in (BashOutput(text="a"), BashOutput(text="b"), delta("c"), BashOutput(text="d")):
        source.publish(event)
    assert shown(reader.take_now()) == [(1, 2, "ab"), (3, 3, "c"), (4, 4, "d")]


async def test_deltas_of_other_items_and_kinds_stay_apart() -> None:
    source = feed()
    reader = source.subscribe()
    thought = ThoughtDelta(run=RUN, turn=TURN, item=ItemId("i"), text="t")
    for event in (delta("a", "i"), delta("b", "j"), thought, delta("c", "i")):
        source.publish(event)
    assert shown(reader.take_now()) == [(1, 1, "a"), (2, 2, "b"), (3, 3, "t"), (4, 4, "c")]


async def test_every_reader_sees_everything_since_it_came_in_the_same_order() -> None:
    source = feed()
    early = source.subscribe()
    source.publish(Notice(level="info", text="1"))
    late = source.subscribe()
    source.publish(Notice(level="info", text="2"))
    assert [text for *_, text in shown(early.take_now())] == ["1", "2"]
    assert [text for *_, text in shown(late.take_now())] == ["2"]


async def test_a_reader_of_some_types_gets_those_alone_and_is_not_woken_by_others() -> None:
    source = feed()
    everything = source.subscribe()
    source.publish(NOTICE)
    notices = source.subscribe(only=(Notice,))
    source.publish(delta("a"))
    assert (len(notices), notices.urgent) == (0, False)
    source.publish(NOTICE)
    assert ([one.seq for one in notices.take_now()], len(everything.take_now())) == ([3], 3)
    notices.close()
    source.publish(NOTICE)
    assert ([*notices.take_now()], len(everything.take_now())) == ([], 1)


async def test_a_reader_that_is_closed_gets_nothing_more_and_the_others_do() -> None:
    source = feed()
    one, two = source.subscribe(), source.subscribe()
    one.close()
    one.close()
    source.publish(NOTICE)
    assert (one.take_now(), len(two.take_now())) == ((), 1)
    assert await one.take() == ()


async def test_when_the_feed_closes_a_reader_gets_the_rest_and_then_the_end() -> None:
    source = feed()
    reader = source.subscribe()
    source.publish(NOTICE)
    source.close()
    source.publish(NOTICE)
    assert len(await reader.take()) == 1
    assert await reader.take() == ()
    assert await source.subscribe().take() == ()


async def test_whoever_waits_is_woken_by_an_event_and_by_the_end() -> None:
    source = feed()
    reader = source.subscribe()
    told: list[object] = []

    async def listen() -> None:
        told.append(await reader.take())
        await reader.wait_closed()
        told.append("closed")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await anyio.wait_all_tasks_blocked()
            assert told == []
            source.publish(NOTICE)
            await anyio.wait_all_tasks_blocked()
            assert len(told) == 1
            source.close()
    assert told[1] == "closed"


async def test_a_reader_can_be_iterated_to_its_end() -> None:
    source = feed()
    reader = source.subscribe()
    for text in "abc":
        source.publish(Notice(level="info", text=text))
    source.close()
    assert [one.seq async for one in reader] == [1, 2, 3]


async def test_iterating_never_loses_deltas_however_many_were_seen() -> None:
    source = feed()
    reader = source.subscribe()
    piece = "x" * 1024
    for _ in range(2 * READER_BYTES // len(piece)):
        source.publish(delta(piece))
        assert (await anext(reader)).event == delta(piece)
    assert not reader.missed()
    assert not reader.urgent


# What is urgent.


def urgency(events: Sequence[Event]) -> list[bool]:
    """Say after which events something urgent waits, everything being taken in between."""
    source = feed()
    reader = source.subscribe()
    found: list[bool] = []
    for event in events:
        source.publish(event)
        found.append(reader.urgent)
        reader.take_now()
    return found


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([NOTICE, NOTICE], [True, True]),
        ([delta("a"), delta("b")], [False, False]),
        ([NOTICE, delta("a"), delta("b")], [True, True, False]),
        ([delta("a"), NOTICE, delta("b"), delta("c"), NOTICE], [False, True, True, False, True]),
    ],
    ids=["events", "deltas", "first-delta", "mixed"],
)
async def test_all_but_deltas_is_urgent_and_so_is_the_first_delta_after(
    events: Sequence[Event], expected: list[bool]
) -> None:
    assert urgency(events) == expected


async def test_urgency_lasts_until_all_is_taken() -> None:
    source = feed()
    reader = source.subscribe()
    source.publish(NOTICE)
    source.publish(delta("a"))
    source.publish(delta("b"))
    assert reader.urgent
    with anyio.fail_after(5):
        await reader.wait_urgent()
    reader.take_now()
    assert not reader.urgent


async def test_the_wait_for_something_urgent_ends_with_the_reader() -> None:
    source = feed()
    reader = source.subscribe()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            ended = anyio.Event()

            async def wait() -> None:
                await reader.wait_urgent()
                ended.set()

            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            source.publish(delta("a"))
            await anyio.wait_all_tasks_blocked()
            assert not ended.is_set()
            reader.close()


# What a reader that lags holds.


def held(reader: EventSubscription) -> int:
    """Count the characters of deltas that a reader holds."""
    events = [one.event for one in reader._pending]
    return sum(len(one.text) for one in events if isinstance(one, MessageDelta))


async def test_a_reader_that_lags_holds_few_events_and_loses_no_text() -> None:
    source = feed()
    reader = source.subscribe()
    count = 10 * READER_EVENTS
    most = 0
    for _ in range(count):
        source.publish(delta("ab"))
        most = max(most, len(reader._pending))
    assert most <= READER_EVENTS + 1
    assert not reader.missed()
    assert shown(reader.take_now()) == [(1, count, "ab" * count)]


async def test_a_reader_that_never_takes_holds_a_bounded_text_and_is_told_once() -> None:
    source = feed()
    reader = source.subscribe()
    other = source.subscribe()
    piece = "x" * 4096
    source.publish(NOTICE)
    for _ in range(3 * READER_BYTES // len(piece)):
        source.publish(delta(piece))
        source.publish(delta("y", "j"))
        assert held(reader) <= READER_BYTES + len(piece)
        other.take_now()
    source.publish(NOTICE)
    taken = reader.take_now()
    assert [one.event for one in taken if isinstance(one.event, Notice)] == [NOTICE, NOTICE]
    assert (reader.missed(), reader.missed()) == (True, False)
    assert not other.missed()


async def test_after_a_gap_the_bytes_count_from_zero() -> None:
    source = feed()
    reader = source.subscribe()
    source.publish(delta("x" * (READER_BYTES + 1)))
    assert reader.missed()
    source.publish(delta("x" * READER_BYTES))
    assert not reader.missed()
    assert len(reader.take_now()) == 1
    source.publish(delta("x" * READER_BYTES))
    assert not reader.missed()


async def test_the_newest_arguments_so_far_replace_the_earlier_ones() -> None:
    source = feed()
    reader = source.subscribe()
    for text, partial in (("{", None), ('"a"', {"a": ""}), (":1", {"a": 1}), ("}", None)):
        source.publish(
            ToolInputDelta(run=RUN, turn=TURN, item=ItemId("i"), text=text, partial=partial)
        )
    (merged,) = reader.take_now()
    assert merged.event == ToolInputDelta(
        run=RUN, turn=TURN, item=ItemId("i"), text='{"a":1}', partial={"a": 1}
    )


# Merging, for any sequence.

DELTAS = (MessageDelta, ThoughtDelta, ToolInputDelta, ToolOutputDelta)
EVENTS = st.lists(
    st.one_of(
        st.just(NOTICE),
        st.builds(
            lambda kind, item, text: kind(run=RUN, turn=TURN, item=ItemId(item), text=text),
            st.sampled_from(DELTAS),
            st.sampled_from("ij"),
            st.text(max_size=3),
        ),
    ),
    max_size=40,
)


def told(events: Sequence[Event]) -> dict[tuple[str, str], str]:
    """Join the texts of each item."""
    texts: dict[tuple[str, str], str] = {}
    for event in events:
        if isinstance(event, DELTAS):
            key = (type(event).__name__, event.item)
            texts[key] = texts.get(key, "") + event.text
    return texts


@given(events=EVENTS, chunks=st.lists(st.integers(1, 10), max_size=20), start=st.integers(0, 9))
def test_merging_in_any_chunking_keeps_texts_order_and_a_gapless_range(
    events: list[Event], chunks: list[int], start: int
) -> None:
    source = feed(start)
    reader = source.subscribe()
    left = iter(events)
    taken: list[EventEnvelope] = []
    for size in [*chunks, len(events)]:
        for event in itertools.islice(left, size):
            source.publish(event)
        taken.extend(reader.take_now())
    assert told([one.event for one in taken]) == told(events)
    edges = [(start, start), *((one.first, one.seq) for one in taken)]
    assert all(after[0] == before[1] + 1 for before, after in itertools.pairwise(edges))
    assert edges[-1][1] == source.seq == start + len(events)
    plain = [event for event in events if event == NOTICE]
    assert [one.event for one in taken if one.event == NOTICE] == plain


@given(events=EVENTS)
def test_merging_twice_is_merging_once_and_leaves_no_neighbours(events: list[Event]) -> None:
    stamped = [
        EventEnvelope(seq=seq, first=seq, at_ms=seq, event=event)
        for seq, event in enumerate(events, 1)
    ]
    merged = merge(stamped)
    assert merge(merged) == merged
    for before, after in itertools.pairwise(merged):
        if isinstance(before.event, DELTAS) and type(before.event) is type(after.event):
            assert before.event.item != getattr(after.event, "item", None)
