"""Events as bytes of the wire: each is encoded once, however many read it.

Deltas are most of what is sent, and all of one item look alike but for number, time and text: their bytes are put
together by hand. A test holds them against the general way.
"""

from collections import OrderedDict
from typing import Final

from agent_core.events import (
    BashOutput,
    Delta,
    EventEnvelope,
    ToolInputDelta,
    ToolOutputDelta,
)
from agent_core.events.codec import NAMES
from agent_core.kernel import rfc3339
from agent_core.kernel.json import encode as to_json
from tiller_server.lsp.encode import serializer

SHARED_EVENTS: Final = 64
"""How many encoded events are kept for the other subscribers, who ask for them within milliseconds."""
SHARED_BYTES: Final = 32 * 1024
"""Largest encoded event that is kept, in bytes; a larger one is encoded again for each subscriber."""

_Item = tuple[type, str | None, str | None]


class EventBytes:
    """Encodes the events of one session."""

    def __init__(self) -> None:
        self._shared: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._at: tuple[int, bytes] = (-1, b"")
        self._item: _Item | None = None
        self._middle = b""

    def of(self, stamped: EventEnvelope) -> bytes:
        """Return an event as JSON on one line."""
        key = (stamped.first, stamped.seq)
        cached = self._shared.get(key)
        if cached is not None:
            return cached
        event = stamped.event
        if isinstance(event, Delta) and not _is_elided(event):
            body = self._delta(stamped, event)
        else:
            body = to_json(serializer.event(stamped))
        self._share(key, body)
        return body

    def _delta(self, stamped: EventEnvelope, event: Delta) -> bytes:
        if self._at[0] != stamped.at_ms:
            self._at = (stamped.at_ms, rfc3339(stamped.at_ms).encode())
        item = _item(event)
        if item != self._item:
            self._item, self._middle = item, _middle(event)
        text = to_json(event.text)
        if isinstance(event, ToolInputDelta) and event.partial is not None:
            text += b',"partial":' + to_json(event.partial)
        if stamped.first == stamped.seq:
            return b'{"seq":%d,"at":"%b",%b%b}' % (stamped.seq, self._at[1], self._middle, text)
        return b'{"seq":%d,"from":%d,"at":"%b",%b%b}' % (
            stamped.seq,
            stamped.first,
            self._at[1],
            self._middle,
            text,
        )

    def _share(self, key: tuple[int, int], body: bytes) -> None:
        if len(body) > SHARED_BYTES:
            return
        self._shared[key] = body
        if len(self._shared) > SHARED_EVENTS:
            _ = self._shared.popitem(last=False)


def ranged(body: bytes, *, first: int) -> bytes:
    """Return an encoded event with a `from` field: it covers every event from that number on."""
    end = body.index(b",") + 1
    return b'%b"from":%d,%b' % (body[:end], first, body[end:])


def _is_elided(event: Delta) -> bool:
    return isinstance(event, ToolOutputDelta) and event.elided is not None


def _item(event: Delta) -> _Item:
    if isinstance(event, BashOutput):
        return type(event), None, None
    # A turn belongs to one run, an item to one turn; without a turn the run is told by the item's id.
    return type(event), event.turn, event.item


def _middle(event: Delta) -> bytes:
    """Return what stands between a delta's time and its text."""
    out = [b'"type":"%b",' % NAMES[type(event)].encode()]
    if not isinstance(event, BashOutput):
        out.append(b'"run":%b,' % to_json(event.run))
        if event.turn is not None:
            out.append(b'"turn":%b,' % to_json(event.turn))
        out.append(b'"item":%b,' % to_json(event.item))
    out.append(b'"text":')
    return b"".join(out)
