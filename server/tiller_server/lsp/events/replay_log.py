"""The events of a loaded session: kept before they are sent, and given again to who reconnects."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import Final

import anyio.to_thread
import msgspec
from msgspec import Struct

from agent_core.events import Delta, Event, EventEnvelope
from agent_core.kernel.values import Value
from tiller_server.lsp.events.cache_file import NumberedEvent, ReplayFile
from tiller_server.lsp.events.cache_writer import EventLogSource, ReplayWriter
from tiller_server.lsp.events.encoding import EventBytes, ranged
from tiller_server.lsp.events.pending_items import OpenItems

RECENT_BYTES: Final = 96 * 1024
"""How many bytes of the newest events stay in memory: most who reconnect were away for a moment."""
READ_BYTES: Final = 512 * 1024
"""How much is read from the cache at a time."""

_ENDED: Final = (b'"message.ended"', b'"thought.ended"', b'"tool.ended"')
_TYPE_WITHIN: Final = 128

_log = logging.getLogger(__name__)


class EncodedEvent(Value, frozen=True, kw_only=True):
    """Message for one subscriber, for a range of consecutive event numbers."""

    first: int
    seq: int
    body: bytes
    """The event; empty: the client does not see it."""
    event: Event | None = None
    """Set for what is told now and for deltas; other events that are given again are bytes alone."""

    @property
    def is_delta(self) -> bool:
        """Whether it streams, and may be dropped for a client that is too slow."""
        return isinstance(self.event, Delta)


class _Recent(Struct, kw_only=True):
    """The newest events that are no deltas."""

    after: int
    """Events up to this one are not here."""
    newest: int
    lines: deque[NumberedEvent] = msgspec.field(default_factory=deque[NumberedEvent])
    size: int = 0

    def add(self, line: NumberedEvent) -> None:
        self.newest = line[0]
        self.lines.append(line)
        self.size += len(line[1])
        while self.size > RECENT_BYTES and len(self.lines) > 1:
            self.after, body = self.lines.popleft()
            self.size -= len(body)


class EventLog:
    """Sees every event of a session first; subscribers ask it for bytes, for leave to send, and for what they missed."""

    def __init__(
        self,
        *,
        epoch: str,
        seq: int,
        file: ReplayFile | None,
        newest_entry: Callable[[], str | None],
        is_stored: Callable[[], bool],
        new_epoch: Callable[[], str],
    ) -> None:
        """Begin after the event `seq`.

        Args:
            epoch: Epoch of the numbers; it changes when the disk has to be given up.
            seq: Number of the newest event so far.
            file: File that keeps the events; None for a session in memory.
            newest_entry: The newest entry of the session's own file.
            is_stored: Whether that file is there by now; asked on a thread.
            new_epoch: Creates an epoch.
        """
        self.epoch = epoch
        self.newest = seq
        """The number of the newest event."""
        self.bytes: Final = EventBytes()
        self._new_epoch = new_epoch
        self._open = OpenItems()
        self._recent = _Recent(after=seq, newest=seq)
        source = EventLogSource(
            newest_entry=newest_entry, is_stored=is_stored, gave_up=self._gave_up
        )
        self._writer = ReplayWriter(file, seq=seq, source=source)
        self.run: Final = self._writer.run
        """The task that writes; ends after `close`."""
        self.close: Final = self._writer.close

    @property
    def persisted_to(self) -> int:
        """The number up to which events may be sent."""
        return self._writer.persisted_to

    async def wait_persisted(self, seq: int) -> None:
        """Wait until everything up to a number may be sent; bounded by what a slow disk is given."""
        if self._writer.persisted_to < seq:
            await self._writer.wait_persisted(seq)

    def see(self, stamped: EventEnvelope) -> None:
        """Record an event of the session, in the same step in which the session publishes it."""
        self.newest = stamped.seq
        self._open.see(stamped)
        if isinstance(stamped.event, Delta):
            self._writer.put(stamped.seq, None)
            return
        body = self.bytes.of(stamped)
        self._recent.add((stamped.seq, body))
        self._writer.put(stamped.seq, body)

    def replay(self, epoch: str | None, after: int | None) -> "Replay | None":
        """Begin to give again what came after an event; None when that is not known (any more)."""
        if epoch != self.epoch or after is None or after > self.newest:
            return None
        return (
            Replay(self, after=after, deltas=self._open.after(after))
            if (self._open.covers(after))
            else None
        )

    async def lines(self, after: int, *, to: int) -> tuple[Sequence[NumberedEvent], int] | None:
        """Return some of the events in `(after, to]` that are no deltas, and how far they reach; None: they are gone."""
        recent = self._recent
        if after >= recent.newest:
            return (), to
        if after >= recent.after:
            newer = takewhile(lambda line: line[0] > after, reversed(recent.lines))
            return [line for line in reversed([*newer]) if line[0] <= to], to
        await self.wait_persisted(to)
        file = self._writer.file
        if file is None:
            return None
        try:
            read = partial(file.read, after, to=to, most_bytes=READ_BYTES)
            return await anyio.to_thread.run_sync(read)
        except OSError as error:
            _log.warning("the replay cache cannot be read: %s", error)
            return None

    def _gave_up(self) -> None:
        self.epoch = self._new_epoch()
        self._recent = _Recent(after=self.newest, newest=self.newest)


class Replay:
    """One subscriber's way from the last event that it has to the newest at the time it asked."""

    def __init__(self, log: EventLog, *, after: int, deltas: list[EventEnvelope]) -> None:
        self.began_after: Final = after
        self.at = after
        """The last event that was given."""
        self.to: Final = log.newest
        self._log = log
        self._epoch = log.epoch
        self._deltas = deque(deltas)

    @property
    def is_over(self) -> bool:
        """Whether all was given."""
        return self.at >= self.to

    async def next(self) -> list[EncodedEvent] | None:
        """Return what comes next, in order, and move `at` behind it; None when it is gone meanwhile."""
        found = await self._log.lines(self.at, to=self.to)
        if found is None or self._log.epoch != self._epoch:
            return None
        lines, reached = found
        pieces: list[EncodedEvent] = []
        before = self.at
        for seq, body in lines:
            before = self._put_deltas(pieces, before, to=seq)
            stands_for_more = seq > before + 1 and _is_ended(body)
            shown = ranged(body, first=before + 1) if stands_for_more else body
            pieces.append(EncodedEvent(first=before + 1, seq=seq, body=shown))
            before = seq
        before = self._put_deltas(pieces, before, to=reached)
        if before < reached:
            pieces.append(EncodedEvent(first=before + 1, seq=reached, body=b""))
        self.at = reached
        return pieces

    def _put_deltas(self, pieces: list[EncodedEvent], before: int, *, to: int) -> int:
        while self._deltas and self._deltas[0].seq <= to:
            delta = self._deltas.popleft()
            body = self._log.bytes.of(delta)
            pieces.append(
                EncodedEvent(first=before + 1, seq=delta.seq, body=body, event=delta.event)
            )
            before = delta.seq
        return before


def _is_ended(body: bytes) -> bool:
    head = body[:_TYPE_WITHIN]
    return any(kind in head for kind in _ENDED)
