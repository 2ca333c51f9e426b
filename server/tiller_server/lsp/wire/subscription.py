"""How a client follows a session: subscribe, acknowledge, and the frames that come back."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from tiller_server.lsp.wire.base import (
    FailFastList,
    Marker,
    Seq,
    SessionParams,
    Token,
    UncheckedJsonObject,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.capabilities import EventDetail
from tiller_server.lsp.wire.method import notification, request
from tiller_server.lsp.wire.session import Snapshot

__all__ = [
    "ACK",
    "FRAMES",
    "SERVED",
    "SUBSCRIBE",
    "AckParams",
    "EventsFrame",
    "GapFrame",
    "HeartbeatFrame",
    "SnapshotFrame",
    "SubscribeParams",
    "SubscribeResult",
    "SubscriptionFrame",
]


class SubscribeParams(SessionParams):
    """Subscribe to the events of a session; the request stays open."""

    partial_result_token: Token
    """Token of the frames."""
    epoch: str | None = None
    """Epoch that the client knows."""
    from_: Seq | None = None
    """Last event that the client has; with `epoch`, the events after it are sent again."""
    detail: EventDetail | None = None
    """`full` (default); `normal`: without `tool.input.delta`; `status`: without deltas."""
    flush_ms: Annotated[int, Field(ge=16, le=250)] | None = None
    """How long deltas gather before a frame: 16 to 250, default 40."""
    ack: Marker | bool | None = None
    """The client acknowledges with `agent/ack`."""


class SubscribeResult(WireModel):
    """End of a subscription."""

    reason: Literal["closed", "superseded", "lagging"] | Vendor
    """`closed`: cancelled, or the session was closed; `superseded`: the token was subscribed again; `lagging`: the client did not read."""
    last: Seq
    """Last event that was sent."""


class AckParams(WireModel):
    """Acknowledge the events of a subscription."""

    token: Token
    """Token of the subscription."""
    seq: Seq
    """Last event that the client has handled."""


class EventsFrame(WireModel):
    """Events in order, contiguous with the frame before."""

    kind: Literal["agent/events"] = "agent/events"
    """Kind of the frame."""
    session: str
    """Session id."""
    epoch: str
    """Epoch of the event numbers."""
    from_: Seq
    """First event number that the frame covers."""
    to: Seq
    """Last event number that the frame covers."""
    events: FailFastList[UncheckedJsonObject]
    """The events."""


class SnapshotFrame(WireModel):
    """Session as a whole: the first frame, or the first after a gap."""

    kind: Literal["agent/snapshot"] = "agent/snapshot"
    """Kind of the frame."""
    session: str
    """Session id."""
    epoch: str
    """Epoch of the event numbers."""
    seq: Seq
    """Last event that the snapshot includes."""
    snapshot: Snapshot
    """The session."""


class GapFrame(WireModel):
    """Events that were left out because the client did not read."""

    kind: Literal["agent/gap"] = "agent/gap"
    """Kind of the frame."""
    session: str
    """Session id."""
    epoch: str
    """Epoch of the event numbers."""
    from_: Seq
    """First event that was left out."""
    to: Seq
    """Last event that was left out."""


class HeartbeatFrame(WireModel):
    """Sign of life, after 15 s without a frame."""

    kind: Literal["agent/heartbeat"] = "agent/heartbeat"
    """Kind of the frame."""
    session: str
    """Session id."""
    epoch: str
    """Epoch of the event numbers."""
    seq: Seq
    """Last event that the client has been sent."""


SubscriptionFrame = EventsFrame | SnapshotFrame | GapFrame | HeartbeatFrame

FRAMES: Mapping[str, type[WireModel]] = {
    "agent/events": EventsFrame,
    "agent/snapshot": SnapshotFrame,
    "agent/gap": GapFrame,
    "agent/heartbeat": HeartbeatFrame,
}


SUBSCRIBE: Final = request("agent/subscribe", SubscribeParams, SubscribeResult)
ACK: Final = notification("agent/ack", AckParams)
SERVED: Final = (SUBSCRIBE, ACK)
"""Methods of this module that clients call, in the order of PROTOCOL.md."""
