"""The stream of updates of one session to one client, with the place in the events that it has reached."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from agent_core.events import Event, EventEnvelope
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from tiller_server.acp.peer import JsonRpcPeer
from tiller_server.acp.updates.projector import Projector, ShownParts
from tiller_server.agent_client.events import event_of

ACKNOWLEDGE_S: Final = 0.02
"""How long events wait to be acknowledged together; far less than 256 KiB of them come in this time."""
SEQ: Final = "tiller.dev/seq"
EPOCH: Final = "tiller.dev/epoch"
SHOWN: Final = "tiller.dev/shown"
SESSION: Final = "tiller.dev/session"
RECREATE: Final = "tiller.dev/recreate"
CONTINUE: Final = "tiller.dev/continue"
PROMPTED: Final = "tiller.dev/prompted"
"""Keys of `_meta`: last event that the update completes, epoch of its number, characters of an unfinished text by item, id of the
stored session where the client has another one, whether to make the session anew if nothing of it was stored, the run to continue
if it was interrupted, and whether a prompt follows that was not answered."""


class UpdateForm(Protocol):
    """Form of updates in a version of the protocol; one object per session."""

    def restart(self, snapshot: JsonObject) -> None:
        """Begin at a snapshot of the session."""
        ...

    def state(self, *, is_continued: bool, is_prompted: bool) -> list[JsonObject]:
        """Return the updates that report the state of the session.

        Args:
            is_continued: Whether an interrupted run goes on, of which no event has come yet.
            is_prompted: Whether a prompt is about to be sent again, which continues a run that was interrupted.
        """
        ...

    def local(self, message_id: str, content: JsonValue) -> list[JsonObject]:
        """Return the updates for a prompt that was handled without a run."""
        ...

    def end(self) -> list[JsonObject]:
        """Return the updates that report that an interrupted run has nothing more to do."""
        ...

    def live(self, event: Event | None, updates: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the updates for an event, or for another cause, from those of the projector."""
        ...

    def replayed(self, event: Event, updates: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the updates for a stored event from those of the projector."""
        ...


class UpdateStream:
    """Updates of a session."""

    def __init__(
        self, peer: JsonRpcPeer, root: Path, parts: ShownParts, form: UpdateForm | None
    ) -> None:
        """Create one for a client that was told of nothing yet.

        Args:
            peer: The client.
            root: Folder of the session.
            parts: Kinds of updates that the client has declared.
            form: Form of the updates; None: that of the projector.
        """
        self.session = ""
        """Id by which the client knows the session."""
        self.epoch = ""
        self.seq = 0
        """Last event that the client has all updates of."""
        self.own: set[str] = set()
        """Ids of the prompts of this client, which it shows itself, unless the form has an echo of them."""
        self._peer = peer
        self._root = root
        self._parts = parts
        self._form = form
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
        if self._form is not None:
            self._form.restart(snapshot)

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
        own = self.own if self._form is None else ()
        return Projector(self._root, self._parts, own=own, shown=shown)

    # ------------------------------------------------------------------ to the client

    @property
    def meta(self) -> JsonObject:
        """The place that the client has reached, as `_meta`."""
        return {SEQ: self.seq, EPOCH: self.epoch, **self._stored}

    def send(self, update: JsonObject) -> None:
        """Send an update that no event has caused."""
        for one in [update] if self._form is None else self._form.live(None, [update]):
            self._send(one)

    def report_state(self, *, is_continued: bool = False, is_prompted: bool = False) -> None:
        """Send the state of the session, where the protocol has one.

        Args:
            is_continued: Whether an interrupted run goes on, of which no event has come yet.
            is_prompted: Whether a prompt is about to be sent again, which continues a run that was interrupted.
        """
        if self._form is not None:
            for update in self._form.state(is_continued=is_continued, is_prompted=is_prompted):
                self._send(update)

    def report_end(self) -> None:
        """Send that an interrupted run has nothing more to do, where the protocol has a state of the session."""
        for update in [] if self._form is None else self._form.end():
            self._send(update)

    def show_message(self, message: str, content: JsonValue) -> None:
        """Send a message of the user, where the client does not show it itself; one that it has is replaced."""
        if self._form is not None:
            echo: JsonObject = {"sessionUpdate": "user_message", "messageId": message}
            self._send({**echo, "content": content})

    def show_local(self, message_id: str, content: JsonValue) -> None:
        """Send the updates for a prompt that was handled without a run, where the client does not show it itself."""
        for update in [] if self._form is None else self._form.local(message_id, content):
            self._send(update)

    def _send(self, update: JsonObject, more: JsonObject | None = None) -> None:
        meta: JsonObject = {**self.meta, **(more or {})}
        params: JsonObject = {"sessionId": self.session, "update": update, "_meta": meta}
        self._peer.notify("session/update", params)

    def show(self, event: Event, seq: int) -> None:
        """Send the updates of an event."""
        updates = self._projector.updates(event)
        if self._form is not None:
            updates = self._form.live(event, updates)
        for number, update in enumerate(updates, 1):
            if number == len(updates):
                self.seq = seq  # the client has all of the event with this one
            item = as_text(update.get("messageId"))
            shown = self._projector.shown(item)
            self._send(update, {} if shown is None else {SHOWN: {item: shown}})
        self.seq = seq

    async def replay(self, events: Iterator[Event]) -> None:
        """Send the updates of stored events, at the pace at which the client reads."""
        projector = Projector(self._root, self._parts)
        for event in events:
            updates = projector.updates(event)
            for update in updates if self._form is None else self._form.replayed(event, updates):
                self._send(update)
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
        # One for all that comes in this time: the agent is about to send its request to the model.
        await asyncio.sleep(ACKNOWLEDGE_S)
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
