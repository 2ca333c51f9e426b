"""The quick way to the bytes of an event gives what the general way gives, and is quick."""

import time

import pytest

from agent_core.events import (
    BashOutput,
    ChangeCounts,
    Event,
    EventEnvelope,
    MessageDelta,
    RunEnded,
    ThoughtDelta,
    ToolInputDelta,
    ToolOutputDelta,
)
from agent_core.kernel import ItemId, RunId, TurnId
from agent_core.kernel.json import decode, encode
from tests.support.lsp.reducer import Json
from tests.support.session.told import USAGE
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.events.encoding import SHARED_EVENTS, EventBytes, ranged

OF: Json = {"run": RunId('r"1'), "turn": TurnId("t"), "item": ItemId("i")}
EVENTS: dict[str, Event] = {
    "message": MessageDelta(**OF, text='say "hi"\n\x00\u2028 é 🙂'),
    "thought": ThoughtDelta(**OF, text=""),
    "without a turn": ThoughtDelta(run=RunId("r"), turn=None, item=ItemId("i"), text="x"),
    "input": ToolInputDelta(**OF, text='{"a'),
    "input so far": ToolInputDelta(**OF, text="", partial={"a": 'é "q" 🙂', "b": [1, None]}),
    "output": ToolOutputDelta(**OF, text="\ud800 half"),
    "elided": ToolOutputDelta(**OF, text="x", elided=7),
    "bash": BashOutput(text="out"),
    "no delta": RunEnded(
        run=RunId("r"), status="completed", usage=USAGE, changes=ChangeCounts(), error=None
    ),
}


@pytest.mark.parametrize("first", [5, 9], ids=["merged", "single"])
@pytest.mark.parametrize("event", EVENTS.values(), ids=list(EVENTS))
def test_the_quick_way_gives_what_the_general_way_gives(event: Event, first: int) -> None:
    stamped = EventEnvelope(seq=9, first=first, at_ms=1_700_000_000_123, event=event)
    assert EventBytes().of(stamped) == encode(serializer.event(stamped))


def test_an_event_is_encoded_once_for_all_who_ask_soon() -> None:
    known = EventBytes()
    stamped = EventEnvelope(seq=1, first=1, at_ms=0, event=EVENTS["message"])
    body = known.of(stamped)
    assert known.of(stamped) is body
    for seq in range(2, SHARED_EVENTS + 2):
        _ = known.of(EventEnvelope(seq=seq, first=seq, at_ms=0, event=EVENTS["bash"]))
    assert known.of(stamped) == body


def test_a_replayed_event_says_what_it_stands_for_and_is_otherwise_the_same() -> None:
    body = EventBytes().of(EventEnvelope(seq=9, first=9, at_ms=0, event=EVENTS["no delta"]))
    whole = decode(ranged(body, first=3))
    assert isinstance(whole, dict)
    assert whole.pop("from") == 3
    assert whole == decode(body)


def test_items_that_stream_in_turn_keep_their_own_ids() -> None:
    known = EventBytes()
    for seq, item in enumerate("abab", 1):
        event = MessageDelta(run=RunId("r"), turn=TurnId("t"), item=ItemId(item), text="x")
        stamped = EventEnvelope(seq=seq, first=seq, at_ms=seq, event=event)
        assert known.of(stamped) == encode(serializer.event(stamped))


def test_deltas_are_encoded_fast() -> None:
    known = EventBytes()
    stamped = [
        EventEnvelope(seq=n, first=n, at_ms=n // 10, event=MessageDelta(**OF, text="word "))
        for n in range(20_000)
    ]
    begun = time.thread_time()
    for one in stamped:
        _ = known.of(one)
    took_s = time.thread_time() - begun
    print(f"{len(stamped) / took_s:,.0f} deltas a second of one core")
    assert took_s < 1.0
