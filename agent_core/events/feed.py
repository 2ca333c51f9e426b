"""The feed of a session: one writer, many bounded readers that never slow it; deltas are merged."""

from asyncio import Event as Signal
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.events.union import (
    BashEnded,
    BashOutput,
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
from agent_core.kernel import Clock
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


def merge(events: Iterable[EventEnvelope]) -> tuple[EventEnvelope, ...]:
    """Merge adjacent deltas of one item; order and text are untouched, and the newest `partial` replaces the others."""
    merged: list[EventEnvelope] = []
    run: list[EventEnvelope] = []
    for stamped in events:
        if run and not _continues(run[-1], stamped):
            merged.append(_joined(run))
            run = []
        if isinstance(stamped.event, Delta):
            run.append(stamped)
        else:
            merged.append(stamped)
    if run:
        merged.append(_joined(run))
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


def _joined(run: list[EventEnvelope]) -> EventEnvelope:
    first, last = run[0], run[-1]
    if first is last:
        return first
    event = first.event
    text = "".join([_delta_text(one.event) for one in run])
    match event:
        case ToolInputDelta():
            partials = (
                one.event.partial for one in reversed(run) if isinstance(one.event, ToolInputDelta)
            )
            partial = next((one for one in partials if one is not None), None)
            whole: Event = replace(event, text=text, partial=partial)
        case MessageDelta() | ThoughtDelta() | ToolOutputDelta() | BashOutput():
            whole = replace(event, text=text)
        case _:
            return last
    return EventEnvelope(seq=last.seq, first=first.first, at_ms=last.at_ms, event=whole)


__all__ = ["EventEnvelope", "EventFeed", "EventObserver", "EventSubscription", "merge"]

READER_EVENTS = 4096
"""How many events a reader may lag before its deltas are merged in place."""
READER_BYTES = 1 << 20
"""How many bytes of deltas a reader may hold; then outputs lose their middle, and all deltas if that is not enough."""
READER_STATES = 8192
"""How many events besides deltas a reader may hold before it is given up."""

EventObserver = Callable[[EventEnvelope], None]
"""Sees every event in the step that tells it, before any reader; must be quick and must not raise."""


class _Signals(Struct):
    """Wake-up events of a reader's task. Those of anyio cannot be used again, and every reader waits after each event."""

    some: Signal = msgspec.field(default_factory=Signal)
    urgent: Signal = msgspec.field(default_factory=Signal)
    over: Signal = msgspec.field(default_factory=Signal)


class EventSubscription:
    """One subscriber's view: events in order, adjacent deltas of one item merged, nothing lost but on `gap`.

    A reader belongs to one task. Close it when done; the feed then forgets it.
    """

    def __init__(
        self,
        detach: Callable[["EventSubscription"], None],
        *,
        only: tuple[type[Event], ...] = (),
        partials: bool = False,
    ) -> None:
        self.closed = False
        self.only: Final = only
        """The events that the feed puts into it; empty: all."""
        self.partials: Final = partials
        """It shows the arguments of calls as they grow."""
        self.urgent = False
        """Something besides deltas waits, or the first delta after that: worth a frame of its own."""
        self._pending: list[EventEnvelope] = []
        self._delta_bytes = 0
        self._merged_to = 0
        self._signals = _Signals()
        self._eager = False
        self._gap = False
        self._detach = detach

    def put(self, stamped: EventEnvelope) -> None:
        """Append an event from the feed. Never waits; does nothing when the reader is closed."""
        if self.closed:
            return
        self._pending.append(stamped)
        if not isinstance(stamped.event, Delta):
            self._eager = True
            self._set_urgent()
        else:
            self._delta_bytes += len(stamped.event.text)
            self._hold_bounds()
            if self._eager:
                self._eager = False
                self._set_urgent()
        if not self._signals.some.is_set():
            self._signals.some.set()

    async def wait(self) -> None:
        """Wait until there is something to take, or the reader is closed."""
        while not self._pending and not self.closed:
            self._signals.some.clear()
            _ = await self._signals.some.wait()

    async def wait_urgent(self) -> None:
        """Wait until something urgent waits, or the reader is closed."""
        while not self.urgent and not self.closed:
            self._signals.urgent.clear()
            _ = await self._signals.urgent.wait()

    async def wait_closed(self) -> None:
        """Wait until the reader is closed."""
        _ = await self._signals.over.wait()

    async def take(self) -> tuple[EventEnvelope, ...]:
        """Wait for events and give all there are; an empty tuple means that the feed or reader is closed."""
        await self.wait()
        return self.take_now()

    @property
    def has_deltas(self) -> bool:
        """Whether text that streams waits."""
        return self._delta_bytes > 0

    def __len__(self) -> int:
        """How many events wait."""
        return len(self._pending)

    def take_now(self, *, to: int | None = None) -> tuple[EventEnvelope, ...]:
        """Return and remove all pending events, without waiting.

        Args:
            to: Number of the last event to return; later events stay pending. None: all.
        """
        kept: list[EventEnvelope] = []
        if to is not None and self._pending and self._pending[-1].seq > to:
            place = bisect_right(self._pending, to, key=lambda one: one.seq)
            kept = self._pending[place:]
            del self._pending[place:]
        taken = merge(self._pending)
        self._pending = kept
        self._merged_to = 0
        self._delta_bytes = sum(len(one.event.text) for one in kept if isinstance(one.event, Delta))
        self.urgent = any(not isinstance(one.event, Delta) for one in kept)
        return taken

    def drop_deltas(self) -> None:
        """Remove the pending deltas; the ended event of their item still has the whole."""
        self._pending = [one for one in self._pending if not isinstance(one.event, Delta)]
        self._delta_bytes = 0
        self._merged_to = len(self._pending)
        self._gap = True

    def missed(self) -> bool:
        """Return whether deltas were dropped since the last call; the ended event still has the whole."""
        gap, self._gap = self._gap, False
        return gap

    def finish(self) -> None:
        """Close the reader from the feed's side. Pending events can still be read."""
        self.closed = True
        self._signals.over.set()
        self._signals.some.set()
        self._signals.urgent.set()

    def close(self) -> None:
        """End the reader; the feed forgets it."""
        self._pending.clear()
        self.finish()
        self._detach(self)

    def __aiter__(self) -> "EventSubscription":
        return self

    async def __anext__(self) -> EventEnvelope:
        if not self._pending:
            await self.wait()
        if not self._pending:
            raise StopAsyncIteration
        taken = self._pending.pop(0)
        self._merged_to = max(0, self._merged_to - 1)
        if isinstance(taken.event, Delta):
            self._delta_bytes -= len(taken.event.text)
        if not self._pending:
            self.urgent = False
        return taken

    def _set_urgent(self) -> None:
        if not self.urgent:
            self.urgent = True
            self._signals.urgent.set()

    def _hold_bounds(self) -> None:
        is_large = self._delta_bytes > READER_BYTES
        if is_large or len(self._pending) - self._merged_to > READER_EVENTS:
            self._pending = list(merge(self._pending))
            self._merged_to = len(self._pending)
        if is_large:
            self._pending = [elide(one) for one in self._pending]
            self._delta_bytes = sum(
                len(one.event.text) for one in self._pending if isinstance(one.event, Delta)
            )
            if self._delta_bytes > READER_BYTES // 2:
                self.drop_deltas()


class EventFeed:
    """Stamps every event and hands it to all readers, in one order for everybody.

    Written by the session's parts on the loop's thread only.
    """

    def __init__(
        self, clock: Clock, *, seq: int = 0, observer: EventObserver | None = None
    ) -> None:
        self._clock = clock
        self._observer = observer
        self._seq = seq
        self._readers: list[EventSubscription] = []
        self._readers_of: dict[type[Event], tuple[EventSubscription, ...]] = {}
        self.wants_partials = False
        """Whether a reader shows the arguments of calls as they grow."""
        self._tap: EventObserver | None = None
        self._closed = False

    @property
    def seq(self) -> int:
        """The number of the newest event."""
        return self._seq

    def publish(self, event: Event) -> EventEnvelope:
        """Stamp and hand on. Never waits, never fails because of a reader."""
        self._seq += 1
        stamped = EventEnvelope(
            seq=self._seq, first=self._seq, at_ms=self._clock.now_ms(), event=event
        )
        if self._tap is not None:
            self._tap(stamped)
        if self._observer is not None:
            self._observer(stamped)
        for reader in self._readers_for(type(event)):
            reader.put(stamped)
        return stamped

    def go_on_from(self, seq: int, tap: EventObserver) -> None:
        """Set the tap, which sees every event from now on; the next one follows `seq`, unless the feed is further."""
        self._seq = max(self._seq, seq)
        self._tap = tap

    def subscribe(
        self, *, only: tuple[type[Event], ...] = (), partials: bool = False
    ) -> EventSubscription:
        """Open a reader that sees what comes after the newest event.

        Args:
            only: Types of the events that it gets, so that others do not wake its task; empty: all.
            partials: It shows the arguments of calls as they grow; while no reader does, no event has `partial`.
        """
        reader = EventSubscription(self._forget, only=only, partials=partials)
        if self._closed:
            reader.finish()
        else:
            self._readers.append(reader)
            self._readers_of.clear()
            self.wants_partials = self.wants_partials or partials
        return reader

    def close(self) -> None:
        """End all readers after what they still hold."""
        self._closed = True
        for reader in tuple(self._readers):
            reader.finish()
        self._readers.clear()
        self._readers_of.clear()

    def _readers_for(self, kind: type[Event]) -> tuple[EventSubscription, ...]:
        readers = self._readers_of.get(kind)
        if readers is None:
            readers = tuple(one for one in self._readers if not one.only or kind in one.only)
            self._readers_of[kind] = readers
        return readers

    def _forget(self, reader: EventSubscription) -> None:
        if reader in self._readers:
            self._readers.remove(reader)
            self._readers_of.clear()
            self.wants_partials = any(one.partials for one in self._readers)
