"""Fields common to all events: number, time, and place in a session."""

from tiller_server.lsp.wire.base import Seq, Timestamp, WireModel

__all__ = [
    "EventBase",
    "ItemEvent",
    "MessageEvent",
    "RangedItemEvent",
    "RunEvent",
    "SessionEvent",
    "TurnEvent",
]


class EventBase(WireModel):
    """An event; no two of a session share a `seq`. Each event adds its `type`."""

    seq: Seq
    at: Timestamp


class SessionEvent(EventBase):
    """An event that belongs to a run only sometimes."""

    run: str | None = None
    turn: str | None = None
    item: str | None = None


class RunEvent(EventBase):
    """An event of a run."""

    run: str
    turn: str | None = None


class TurnEvent(EventBase):
    """An event of a turn."""

    run: str
    turn: str


class ItemEvent(EventBase):
    """An event of a message, thought or tool call."""

    run: str
    turn: str | None = None
    item: str


class MessageEvent(EventBase):
    """An event of something that is said; a program may say it while no run goes on."""

    run: str | None = None
    turn: str | None = None
    item: str


class RangedItemEvent(ItemEvent):
    """An event that may stand for several of its item: `from` is the first of them, `seq` the last."""

    from_: Seq | None = None
