"""A subscription: a session's events as frames on the client's own progress token."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Literal, Protocol

import anyio
from msgspec.structs import replace

from agent_core.events import (
    BashEnded,
    BashOutput,
    BashStarted,
    Delta,
    Event,
    RunStarted,
    ToolInputDelta,
)
from agent_core.events.feed import READER_STATES
from agent_core.kernel import JsonValue
from agent_core.session import AgentSession
from tiller_server.lsp.events.flow_control import SendWindow
from tiller_server.lsp.events.frame_writer import FRAME_BYTES, FRAME_EVENTS, FrameWriter
from tiller_server.lsp.events.replay_log import EncodedEvent, EventLog, Replay
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.transport.outbox import Lane
from tiller_server.lsp.transport.progress import ProgressToken

FLUSH_MS: Final = 40
FLUSH_MIN_MS: Final = 16
FLUSH_MAX_MS: Final = 250
HEARTBEAT_S: Final = 15.0
LAGGING_S: Final = 30.0
"""A client that has taken nothing for so long is left behind: it subscribes again."""
CREDIT_S: Final = 1.0
"""How long what is more than a delta waits for an acknowledgement before deltas are dropped for it."""
LOOK_S: Final = 1.0

SnapshotFactory = Callable[[], dict[str, JsonValue]]


class EventSource(Protocol):
    """A session that is loaded, and the keeper of its events."""

    @property
    def session(self) -> AgentSession:
        """The session."""
        ...

    @property
    def events(self) -> EventLog:
        """Its events."""
        ...


def of_run(run: str) -> Callable[[Event], bool]:
    """Choose the events of one run."""
    return lambda event: getattr(event, "run", None) == run


def of_bash(event: Event) -> bool:
    """Choose the events of the user's own command."""
    return isinstance(event, BashStarted | BashOutput | BashEnded)


class DetailFilter:
    """Filter of session events for one client: by its wishes, and by its ability to keep up."""

    def __init__(self, level: str, *, only: Callable[[Event], bool] | None) -> None:
        self.is_reduced = False
        """Deltas were dropped: the rest of them would begin in the middle. The next run is whole again."""
        self._level = level
        self._only = only

    def shows(self, event: Event) -> bool:
        """Return whether an event is sent."""
        if isinstance(event, RunStarted):
            self.is_reduced = False
        if self._only is not None and not self._only(event):
            return False
        if self.is_reduced or self._level == "status":
            return not isinstance(event, Delta)
        return self._level == "full" or not isinstance(event, ToolInputDelta)


class Subscription:
    """Sends what a session tells to one client, in order and without a hole."""

    def __init__(
        self,
        connection: LspConnection,
        source: EventSource,
        *,
        token: ProgressToken,
        detail: str = "full",
        flush_ms: int | None = None,
        only: Callable[[Event], bool] | None = None,
        send_window: SendWindow | None = None,
        snapshot: SnapshotFactory | None = None,
    ) -> None:
        """Listen from now on; nothing is sent before `begin` or `run`.

        Args:
            connection: The client.
            source: The session.
            token: The client's, on which everything is sent.
            detail: `full`, `normal` or `status`.
            flush_ms: How long deltas gather; kept between 16 and 250.
            only: Chooses some events; None: all.
            send_window: Counts what the client has not acknowledged; None: it does not acknowledge.
            snapshot: Gives the session as a whole, for when a new epoch begins.
        """
        self._outbox = connection.outbox
        self._events = source.events
        self._detail = DetailFilter(detail, only=only)
        self._send_window = send_window
        self._snapshot = snapshot
        self._flush_s = min(max(flush_ms or FLUSH_MS, FLUSH_MIN_MS), FLUSH_MAX_MS) / 1000
        self._frames = FrameWriter(connection, token=token, session=source.session.id)
        # Listening first may tell things of its own: they come after this number.
        self._cursor = _Cursor(self._events.newest, self._events.epoch)
        self._reader = source.session.subscribe(partials=detail == "full")
        if only is not None:
            self._cursor.begun.set()

    @property
    def last(self) -> int:
        """The newest event that was sent."""
        return self._cursor.sent

    @property
    def has_begun(self) -> bool:
        """Whether it has sent what the client missed."""
        return self._cursor.begun.is_set()

    def follows(self, source: EventSource) -> bool:
        """Return whether it sends the events of a session."""
        return self._events is source.events

    async def begin(self, epoch: str | None, after: int | None) -> bool:
        """Send what the client missed, or a picture of the session; False when the client does not take it.

        Args:
            epoch: The epoch that the client knows, if any.
            after: The last event that it has.
        """
        try:
            replay = self._events.replay(epoch, after)
            if replay is None:
                self._send_snapshot(self._snapshot)
                return True
            return await self._replay(replay)
        finally:
            self._cursor.begun.set()

    async def run(self) -> Literal["closed", "lagging"]:
        """Send until the session ends or the client lags; gives the reason."""
        self._cursor.begun.set()
        try:
            while await self._wait():
                if not await self._has_room():
                    return "lagging"
                await self._events.wait_persisted(self._events.newest)
                self._take()
                if not await self._send_backlog():
                    return "lagging"
            await self._send_all(Lane.STATE)
            return "closed"
        finally:
            self._reader.close()

    async def flush(self) -> None:
        """Send what has been told so far: an answer that must follow it comes next.

        It goes the way of answers, so that even a client that reads slowly gets them in order.
        """
        await self._cursor.begun.wait()
        await self._send_all(Lane.CONTROL)

    def acknowledge(self, seq: int) -> None:
        """Record what the client has taken."""
        if self._send_window is not None:
            self._send_window.acknowledge(seq)

    def close(self) -> None:
        """End the subscription."""
        self._reader.close()

    async def _send_all(self, lane: Lane) -> None:
        await self._events.wait_persisted(self._events.newest)
        self._take()
        while self._cursor.backlog and self._send_frame(lane):
            pass

    async def _wait(self) -> bool:
        """Wait until there is something worth a frame; False when the session is over."""
        reader = self._reader
        while True:
            try:
                async with asyncio.timeout_at(self._frames.sent_at_s + HEARTBEAT_S):
                    await reader.wait()
                break
            except TimeoutError:
                self._frames.heartbeat(self._cursor.epoch, self._cursor.at)
        # The first delta of an item goes out at once; after it they gather, unless something else happens.
        if not reader.urgent and not reader.closed:
            try:
                async with asyncio.timeout(self._flush_s):
                    await reader.wait_urgent()
            except TimeoutError:
                pass
        return not reader.closed

    async def _has_room(self) -> bool:
        """Wait for the client to read, and to acknowledge if it does; False when it has done neither for too long."""
        now_s = asyncio.get_running_loop().time
        begun_s = now_s()
        while True:
            is_writable = self._outbox.writable()
            is_free = not self._waits_for_window()
            if is_writable and is_free:
                return True
            waited_s = now_s() - begun_s
            if is_writable and waited_s >= CREDIT_S and self._matters():
                self._reader.drop_deltas()
                self._cursor.drop_deltas()
                return True
            stalled_s = waited_s if is_writable else self._outbox.stalled_s()
            if stalled_s > LAGGING_S or len(self._reader) > READER_STATES:
                return False
            try:
                async with asyncio.timeout(LOOK_S):
                    if is_writable and self._send_window is not None:
                        await self._send_window.wait()
                    else:
                        await self._outbox.wait_writable()
            except TimeoutError:
                pass
            except ConnectionError:
                return False

    def _waits_for_window(self) -> bool:
        """Return whether deltas wait that may not be sent before the client has acknowledged others."""
        if self._send_window is None or not self._send_window.is_used_up:
            return False
        return self._reader.has_deltas or any(one.is_delta for one in self._cursor.backlog)

    def _matters(self) -> bool:
        """Return whether more than deltas waits."""
        return self._reader.urgent or any(not one.is_delta for one in self._cursor.backlog)

    def _take(self) -> None:
        """Move sendable events to the backlog; a new epoch begins with a snapshot instead."""
        cursor = self._cursor
        if cursor.epoch != self._events.epoch:
            cursor.epoch = self._events.epoch
            if self._snapshot is not None:
                self._begin_anew(self._snapshot)
                return
        if self._reader.missed():
            self._detail.is_reduced = True
        for one in self._reader.take_now(to=self._events.persisted_to):
            if one.first > cursor.taken:
                body = self._events.bytes.of(one) if self._detail.shows(one.event) else b""
                cursor.backlog.append(
                    EncodedEvent(first=one.first, seq=one.seq, body=body, event=one.event)
                )

    def _begin_anew(self, snapshot: SnapshotFactory) -> None:
        """Send the session as it is now, and go on from there."""
        cursor = self._cursor
        _ = self._reader.take_now()
        cursor.backlog.clear()
        cursor.epoch, cursor.sent, cursor.at = (
            self._events.epoch,
            self._events.newest,
            self._events.newest,
        )
        self._send_snapshot(snapshot)

    def _send_snapshot(self, snapshot: SnapshotFactory | None) -> None:
        if snapshot is None:
            return
        cursor = self._cursor
        whole = {**snapshot(), "epoch": cursor.epoch, "seq": cursor.at}
        _ = self._frames.snapshot(cursor.epoch, cursor.at, whole)

    async def _replay(self, replay: Replay) -> bool:
        cursor = self._cursor
        cursor.sent = cursor.at = replay.at
        while not replay.is_over:
            pieces = await replay.next()
            if pieces is None:
                if self._snapshot is not None:
                    self._begin_anew(self._snapshot)
                return True
            cursor.backlog.extend(
                one
                if one.event is None or self._detail.shows(one.event)
                else replace(one, body=b"")
                for one in pieces
            )
            if not await self._send_backlog():
                return False
        if cursor.sent == replay.began_after:
            self._frames.heartbeat(cursor.epoch, cursor.at)
        return True

    async def _send_backlog(self) -> bool:
        while self._cursor.backlog:
            if not await self._has_room() or not self._send_frame(Lane.STATE):
                return False
        return True

    def _send_frame(self, lane: Lane) -> bool:
        """Send one frame of the backlog; False when the connection refused it, after which a hole would follow."""
        cursor = self._cursor
        bodies: list[bytes] = []
        size = delta_bytes = 0
        while cursor.backlog and len(bodies) < FRAME_EVENTS and size < FRAME_BYTES:
            if cursor.backlog[0].first > cursor.at + 1:
                if bodies:
                    break
                if not self._gap(cursor.backlog[0].first - 1, lane):
                    return False
            piece = cursor.backlog.popleft()
            cursor.at = piece.seq
            if piece.body:
                bodies.append(piece.body)
                size += len(piece.body)
                delta_bytes += len(piece.body) if piece.is_delta else 0
        if not bodies:
            # What is hidden is part of the next frame's range.
            return True
        first, cursor.sent = cursor.sent + 1, cursor.at
        if self._send_window is not None:
            self._send_window.spend(cursor.at, delta_bytes)
        return self._frames.events(cursor.epoch, first, cursor.at, bodies, lane=lane)

    def _gap(self, to: int, lane: Lane) -> bool:
        cursor = self._cursor
        first, cursor.sent, cursor.at = cursor.sent + 1, to, to
        return self._frames.gap(cursor.epoch, first, to, lane=lane)


class _Cursor:
    """Where in a session's events one subscription is."""

    def __init__(self, seq: int, epoch: str) -> None:
        self.sent = seq
        """The last event of the last frame."""
        self.at = seq
        """The last event that was looked at; hidden ones are sent as part of a later range."""
        self.epoch = epoch
        self.backlog: deque[EncodedEvent] = deque()
        """Taken, and not sent yet."""
        self.begun = anyio.Event()

    @property
    def taken(self) -> int:
        """The last event that was taken."""
        return self.backlog[-1].seq if self.backlog else self.at

    def drop_deltas(self) -> None:
        """Drop the deltas of the backlog; the gap is reported when the events behind it are sent."""
        self.backlog = deque(one for one in self.backlog if not one.is_delta)
