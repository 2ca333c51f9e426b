"""The stream of updates of one session to one client, with the place in the events that it has reached."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.events import Event, EventEnvelope
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from tiller_server.acp.peer import JsonRpcPeer
from tiller_server.acp.updates.projector import Projector, ShownParts
from tiller_server.agent_client.events import event_of

SEQ: Final = "tiller.dev/seq"
EPOCH: Final = "tiller.dev/epoch"
SHOWN: Final = "tiller.dev/shown"
SESSION: Final = "tiller.dev/session"
RECREATE: Final = "tiller.dev/recreate"
"""Keys of `_meta`: last event that the update completes, epoch of its number, characters of an unfinished text by item, id of the
stored session where the client has another one, and whether to make the session anew if nothing of it was stored."""


class UpdateStream:
    """Updates of a session."""

    def __init__(self, peer: JsonRpcPeer, root: Path, parts: ShownParts) -> None:
        """Create one for a client that was told of nothing yet.

        Args:
            peer: The client.
            root: Folder of the session.
            parts: Kinds of updates that the client has declared.
        """
        self.session = ""
        """Id by which the client knows the session."""
        self.epoch = ""
        self.seq = 0
        """Last event that the client has all updates of."""
        self.own: set[str] = set()
        """Ids of the prompts of this client, which it shows itself."""
        self._peer = peer
        self._root = root
        self._parts = parts
        self._projector = self._new_projector({})
        self._stored: JsonObject = {}
        self._has_moved = asyncio.Event()
        self._to_acknowledge = asyncio.Event()

    def restart(self, snapshot: JsonObject, *, named: str) -> None:
        """Begin at a snapshot of the session.

        Args:
            snapshot: The snapshot.
            named: Id by which the client knows the session; empty: its own.
        """
        seq, stored = snapshot.get("seq"), as_text(snapshot.get("session"))
        self.session = named or stored
        self._stored = {} if self.session == stored else {SESSION: stored}
        self.epoch = as_text(snapshot.get("epoch"))
        self.seq = seq if isinstance(seq, int) else 0

    def continue_after(self, meta: JsonObject) -> bool:
        """Go on after the last update that a client has; return False for a client that has none of this epoch.

        Args:
            meta: `_meta` of that update.
        """
        seq = meta.get(SEQ)
        if not isinstance(seq, int) or meta.get(EPOCH) != self.epoch:
            return False
        self.seq = seq
        shown = as_object(meta.get(SHOWN))
        self._projector = self._new_projector(
            {item: length for item, length in shown.items() if isinstance(length, int)}
        )
        return True

    def _new_projector(self, shown: Mapping[str, int]) -> Projector:
        return Projector(self._root, self._parts, own=self.own, shown=shown)

    # ------------------------------------------------------------------ to the client

    @property
    def meta(self) -> JsonObject:
        """The place that the client has reached, as `_meta`."""
        return {SEQ: self.seq, EPOCH: self.epoch, **self._stored}

    def send(self, update: JsonObject, more: JsonObject | None = None) -> None:
        """Send an update.

        Args:
            update: The update.
            more: Further keys of its `_meta`.
        """
        meta: JsonObject = {**self.meta, **(more or {})}
        params: JsonObject = {"sessionId": self.session, "update": update, "_meta": meta}
        self._peer.notify("session/update", params)

    def show(self, event: Event, seq: int) -> None:
        """Send the updates of an event."""
        updates = self._projector.updates(event)
        for number, update in enumerate(updates, 1):
            if number == len(updates):
                self.seq = seq  # the client has all of the event with this one
            item = as_text(update.get("messageId"))
            shown = self._projector.shown(item)
            self.send(update, {} if shown is None else {SHOWN: {item: shown}})
        self.seq = seq

    async def replay(self, events: Iterator[Event]) -> None:
        """Send the updates of stored events, at the pace at which the client reads."""
        projector = Projector(self._root, self._parts)
        for event in events:
            for update in projector.updates(event):
                self.send(update)
            await self._peer.flushed()

    # ------------------------------------------------------------------ from the agent

    def events(self, frame: JsonObject) -> Iterator[EventEnvelope]:
        """Yield the events of a frame after their updates were sent."""
        wires = frame.get("events")
        for wire in wires if isinstance(wires, list) else []:
            if is_object(wire) and (stamped := event_of(wire)) is not None:
                self.show(stamped.event, stamped.seq)
                yield stamped
        if isinstance(last := frame.get("to"), int):
            self.seq = last
        self._to_acknowledge.set()
        self._has_moved.set()
        self._has_moved.clear()

    async def reached(self) -> int:
        """Wait until there are events to acknowledge that the client has read; return the number of the last."""
        _ = await self._to_acknowledge.wait()
        self._to_acknowledge.clear()
        await self._peer.flushed()
        return self.seq

    async def until(self, condition: Callable[[], bool], *, within_s: float) -> None:
        """Wait until the events so far fulfil a condition, or it takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not condition():
                    _ = await self._has_moved.wait()

    async def until_seq(self, seq: JsonValue, *, within_s: float) -> None:
        """Wait until the updates of an event were sent, or it takes too long."""
        if isinstance(seq, int):
            await self.until(lambda: self.seq >= seq, within_s=within_s)
