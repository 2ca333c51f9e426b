"""Which pieces of a stream belong together, and what ends them."""

from typing import TypeAlias

from agent_core.events.session_events import BashEnded, BashOutput
from agent_core.events.union import (
    Delta,
    Event,
    MessageDelta,
    MessageEnded,
    ThoughtDelta,
    ThoughtEnded,
    ToolEnded,
    ToolInputDelta,
    ToolOutputDelta,
    ToolRunning,
)

StreamKey: TypeAlias = tuple[type, str]
"""The kind of the pieces, and the item that they are of."""


def stream_of(event: Delta) -> StreamKey:
    """Return which stream a piece belongs to."""
    # The user's own commands run one at a time: what they print has no item.
    return type(event), "" if isinstance(event, BashOutput) else event.item


def streams_ended_by(event: Event) -> tuple[StreamKey, ...]:
    """Return the streams that an event ends."""
    match event:
        case MessageEnded(item=item):
            return ((MessageDelta, item),)
        case ThoughtEnded(item=item):
            return ((ThoughtDelta, item),)
        case ToolRunning(item=item):
            return ((ToolInputDelta, item),)
        case ToolEnded(item=item):
            return ((ToolInputDelta, item), (ToolOutputDelta, item))
        case BashEnded():
            return ((BashOutput, ""),)
        case _:
            return ()
