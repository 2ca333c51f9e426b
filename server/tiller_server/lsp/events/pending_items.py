"""The deltas of what has not ended yet: the only ones that a reconnecting client still needs."""

from array import array
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import (
    BashOutput,
    Delta,
    EventEnvelope,
    RunEnded,
    RunStarted,
    ToolInputDelta,
)
from agent_core.events.feed import StreamKey, stream_of, streams_ended_by

OPEN_CHARS: Final = 1 << 20
"""How much text of unfinished items is kept; a client that would need more gets a snapshot."""
PIECES: Final = 512


class _Open(Struct, kw_only=True):
    """An item that streams: its text, and where in it each delta ended."""

    shape: Delta
    """Its newest delta without text; of arguments with the newest `partial`."""
    at_ms: int = 0
    chars: int = 0
    forgotten_to: int = 0
    """Deltas up to this number are gone."""
    seqs: "array[int]" = msgspec.field(default_factory=lambda: array("Q"))
    ends: "array[int]" = msgspec.field(default_factory=lambda: array("Q"))
    pieces: list[str] = msgspec.field(default_factory=list[str])

    def add(self, stamped: EventEnvelope, text: str) -> None:
        self.seqs.append(stamped.seq)
        self.chars += len(text)
        self.ends.append(self.chars)
        self.at_ms = stamped.at_ms
        self.pieces.append(text)
        if len(self.pieces) > PIECES:
            self.pieces[:] = ["".join(self.pieces)]

    def forget(self) -> None:
        """Discard all deltas so far."""
        self.forgotten_to = self.seqs[-1]
        self.chars = 0
        del self.seqs[:], self.ends[:], self.pieces[:]

    def after(self, seq: int) -> Iterator[EventEnvelope]:
        """Return the deltas after a number; consecutive ones are merged into one."""
        text = "".join(self.pieces)
        start = cut = first = last = 0
        for number, end in zip(self.seqs, self.ends, strict=True):
            if number <= seq:
                start = end
                continue
            if first and number != last + 1:
                yield self._piece(first, last, text[start:cut])
                start, first = cut, 0
            first = first or number
            last, cut = number, end
        if first:
            yield self._piece(first, last, text[start:cut])

    def _piece(self, first: int, last: int, text: str) -> EventEnvelope:
        return EventEnvelope(
            seq=last, first=first, at_ms=self.at_ms, event=replace(self.shape, text=text)
        )


class OpenItems:
    """Keeps the deltas of every unfinished item, with their numbers, until it ends."""

    def __init__(self) -> None:
        self._open: dict[StreamKey, _Open] = {}
        self._chars = 0

    def see(self, stamped: EventEnvelope) -> None:
        """Record an event: keep a delta, or discard those of an item that it ends."""
        event = stamped.event
        if isinstance(event, Delta):
            self._add(stamped, event)
        elif isinstance(event, RunStarted | RunEnded):
            self._forget_runs()
        else:
            for key in streams_ended_by(event):
                ended = self._open.pop(key, None)
                self._chars -= ended.chars if ended is not None else 0

    def covers(self, seq: int) -> bool:
        """Return whether everything after a number is still there."""
        return all(one.forgotten_to <= seq for one in self._open.values())

    def after(self, seq: int) -> list[EventEnvelope]:
        """Return the deltas after a number, in order."""
        found = [piece for one in self._open.values() for piece in one.after(seq)]
        return sorted(found, key=lambda one: one.seq)

    def _add(self, stamped: EventEnvelope, event: Delta) -> None:
        key = stream_of(event)
        item = self._open.get(key)
        if item is None:
            item = self._open[key] = _Open(shape=replace(event, text=""))
        item.add(stamped, event.text)
        if isinstance(event, ToolInputDelta) and event.partial is not None:
            item.shape = replace(event, text="")
        self._chars += len(event.text)
        if self._chars > OPEN_CHARS:
            largest = max(self._open.values(), key=lambda one: one.chars)
            self._chars -= largest.chars
            largest.forget()

    def _forget_runs(self) -> None:
        """Nothing of a run follows its end; the user's own command may go on."""
        self._open = {key: one for key, one in self._open.items() if key[0] is BashOutput}
        self._chars = sum(one.chars for one in self._open.values())
