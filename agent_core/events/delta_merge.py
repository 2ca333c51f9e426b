"""Makes less of many deltas: neighbours become one, and the middle of a long output is left out."""

from collections.abc import Iterable

from msgspec.structs import replace

from agent_core.events.session_events import BashOutput
from agent_core.events.union import (
    Delta,
    Event,
    MessageDelta,
    ThoughtDelta,
    ToolInputDelta,
    ToolOutputDelta,
)
from agent_core.kernel.values import Value

HEAD_CHARS = 8 * 1024
"""How much of a long output's beginning is kept when its middle is left out."""
TAIL_CHARS = 8 * 1024


class EventEnvelope(Value, frozen=True, kw_only=True):
    """An event with its place in the session's history."""

    seq: int
    first: int
    """The first number that this event stands for; below `seq` only for merged deltas."""
    at_ms: int
    event: Event


def merge(events: Iterable[EventEnvelope]) -> tuple[EventEnvelope, ...]:
    """Merge adjacent deltas of one item; order and text are untouched."""
    merged: list[EventEnvelope] = []
    texts: list[str] = []
    first: EventEnvelope | None = None
    last: EventEnvelope | None = None
    for stamped in events:
        if first is not None and last is not None:
            if _continues(last, stamped):
                texts.append(_delta_text(stamped.event))
                last = stamped
                continue
            merged.append(_joined(first, last, texts))
            first = None
        if isinstance(stamped.event, Delta):
            first = last = stamped
            texts = [stamped.event.text]
        else:
            merged.append(stamped)
    if first is not None and last is not None:
        merged.append(_joined(first, last, texts))
    return tuple(merged)


def elide(stamped: EventEnvelope) -> EventEnvelope:
    """Remove the middle of long tool output; short output and other events are returned unchanged.

    The first `HEAD_CHARS` characters are the beginning; `elided` is the number of characters missing after them.
    """
    event = stamped.event
    if not isinstance(event, ToolOutputDelta) or len(event.text) <= HEAD_CHARS + TAIL_CHARS:
        return stamped
    left_out = len(event.text) - HEAD_CHARS - TAIL_CHARS
    text = event.text[:HEAD_CHARS] + event.text[-TAIL_CHARS:]
    return replace(stamped, event=replace(event, text=text, elided=left_out + (event.elided or 0)))


def _continues(before: EventEnvelope, after: EventEnvelope) -> bool:
    if type(before.event) is not type(after.event) or after.first != before.seq + 1:
        return False
    # The user's own commands run one at a time: what they print needs no item.
    if isinstance(before.event, BashOutput) or isinstance(after.event, BashOutput):
        return True
    return (
        isinstance(before.event, Delta)
        and isinstance(after.event, Delta)
        and before.event.item == after.event.item
    )


def _delta_text(event: Event) -> str:
    return event.text if isinstance(event, Delta) else ""


def _joined(first: EventEnvelope, last: EventEnvelope, texts: list[str]) -> EventEnvelope:
    if first is last:
        return first
    event = first.event
    text = "".join(texts)
    match event:
        case MessageDelta() | ThoughtDelta() | ToolInputDelta() | ToolOutputDelta() | BashOutput():
            whole: Event = replace(event, text=text)
        case _:
            return last
    return EventEnvelope(seq=last.seq, first=first.first, at_ms=last.at_ms, event=whole)
