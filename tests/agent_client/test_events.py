"""Events of the wire, read back by a terminal that shares a session of the daemon."""

import json
from typing import Any

import pytest

from agent_core.events import Event, EventEnvelope, MessageEnded, PermissionRequested, SessionUsage
from agent_core.events.codec import NAMES
from agent_core.messages import text_of
from tests.events.test_codec import SAMPLES
from tiller_server.agent_client.events import SHOWN, event_of, value_of
from tiller_server.lsp.encode import serializer

READ = [one for one in SAMPLES if isinstance(one, SHOWN)]
AT_MS = 1_700_000_000_000


def test_every_event_that_a_terminal_shows_is_tried() -> None:
    assert {type(one) for one in READ} == set(SHOWN)


@pytest.mark.parametrize(
    "event", READ, ids=[f"{NAMES[type(one)]} {at}" for at, one in enumerate(READ)]
)
def test_an_event_is_the_same_after_the_wire(event: Event) -> None:
    sent = EventEnvelope(seq=7, first=5, at_ms=AT_MS, event=event)
    wire = json.loads(json.dumps(serializer.event(sent)))
    read = event_of(wire)
    assert read is not None
    assert (read.seq, read.first, read.at_ms) == (7, 5, AT_MS)
    assert serializer.event(read) == serializer.event(sent)


def test_a_stored_message_is_read_without_its_context() -> None:
    """Items of `agent/session/read` have the usage of the message alone."""
    item: Any = {
        "item": "1", "kind": "message", "role": "assistant", "stopReason": "stop", "model": "lab/m",
        "content": [{"type": "text", "text": "Hello."}],
        "usage": {"tokens": {"in": 3, "out": 4, "cacheRead": 0, "cacheWrite": 0, "reasoning": 0}},
    }  # fmt: skip
    read = value_of({"run": None, "turn": None, **item}, MessageEnded)
    assert read.usage is not None
    assert (read.usage.tokens.input, read.usage.tokens.output) == (3, 4)
    assert read.usage.context_used is None
    assert text_of(read.content) == "Hello."


def test_a_request_that_lacks_a_part_is_left_out() -> None:
    asked = next(one for one in READ if isinstance(one, PermissionRequested))
    wire: Any = serializer.event(EventEnvelope(seq=1, first=1, at_ms=AT_MS, event=asked))
    for part in ("request", "title", "since", "subject", "options", "default"):
        rest = {name: one for name, one in wire["request"].items() if name != part}
        assert event_of({**wire, "request": rest}) is None, part


@pytest.mark.parametrize(
    "change",
    [{"at": "yesterday"}, {"seq": None}, {"usage": {"tokens": "many"}}, {"type": "new.kind"}],
)
def test_an_event_that_cannot_be_read_is_left_out(change: dict[str, Any]) -> None:
    usage = next(one for one in READ if isinstance(one, SessionUsage))
    wire = dict(serializer.event(EventEnvelope(seq=1, first=1, at_ms=AT_MS, event=usage)))
    assert event_of(wire) is not None
    assert event_of({**wire, **change}) is None
