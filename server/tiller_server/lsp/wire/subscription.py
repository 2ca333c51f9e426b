"""How a client follows a session: subscribe, acknowledge, and the frames that come back."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from tiller_server.lsp.wire.base import (
    JsonObject,
    Many,
    Marker,
    Seq,
    SessionParams,
    Token,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.capabilities import EventDetail
from tiller_server.lsp.wire.session import Snapshot

__all__ = [
    "FRAMES",
    "AckParams",
    "EventsFrame",
    "Frame",
    "GapFrame",
    "HeartbeatFrame",
    "SnapshotFrame",
    "SubscribeParams",
    "SubscribeResult",
]


class SubscribeParams(SessionParams):
    """Follows a session; the request stays open as long as that."""

    partial_result_token: Token
    epoch: str | None = None
    from_: Seq | None = None
    """The last event the client has; with the epoch, what came after it is sent again."""
    detail: EventDetail | None = None
    flush_ms: Annotated[int, Field(ge=16, le=250)] | None = None
    ack: Marker | bool | None = None


class SubscribeResult(WireModel):
    """Why it ended, and the last event that was sent."""

    reason: Literal["closed", "superseded", "lagging"] | Vendor
    last: Seq


class AckParams(WireModel):
    """Says up to where the client has taken the events of a subscription."""

    token: Token
    seq: Seq


class EventsFrame(WireModel):
    """Events in order, without a hole between this frame and the one before."""

    kind: Literal["agent/events"] = "agent/events"
    session: str
    epoch: str
    from_: Seq
    to: Seq
    events: Many[JsonObject]


class SnapshotFrame(WireModel):
    """The session as a whole: the first frame, or the first after a gap."""

    kind: Literal["agent/snapshot"] = "agent/snapshot"
    session: str
    epoch: str
    seq: Seq
    snapshot: Snapshot


class GapFrame(WireModel):
    """Events that were left out because the client was too slow."""

    kind: Literal["agent/gap"] = "agent/gap"
    session: str
    epoch: str
    from_: Seq
    to: Seq


class HeartbeatFrame(WireModel):
    """A sign of life when nothing happens."""

    kind: Literal["agent/heartbeat"] = "agent/heartbeat"
    session: str
    epoch: str
    seq: Seq


Frame = EventsFrame | SnapshotFrame | GapFrame | HeartbeatFrame

FRAMES: Mapping[str, type[WireModel]] = {
    "agent/events": EventsFrame,
    "agent/snapshot": SnapshotFrame,
    "agent/gap": GapFrame,
    "agent/heartbeat": HeartbeatFrame,
}
