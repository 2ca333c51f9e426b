"""The events of each session for all streams: one subscription of the daemon, whose frames are encoded once."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agent_core.kernel import JsonObject
from agent_core.kernel.json import encode
from agent_core.kernel.values import Value
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.daemon_link import DaemonLink

RECENT_BYTES: Final = 256 << 10
"""Bytes of the newest frames that are kept for a stream that joins a moment later."""
NAMED: Final[Mapping[str, str]] = {"agent/snapshot": "snapshot", "agent/gap": "gap"}
LAGGING: Final = "lagging"
"""Reason to follow again from the last event."""
_log = logging.getLogger(__name__)


class Position(Value, frozen=True):
    """The last event of a session that a reader has."""

    epoch: str
    seq: int


class SessionFrame(Value, frozen=True, kw_only=True):
    """A frame of a session as streams send it."""

    session: str
    event: str | None
    """Name of the server-sent event; None: it has none."""
    first: int | None
    """First event that it continues with; None: it begins anew."""
    position: Position
    """Where a reader is behind it."""
    data: bytes
    token: str | None = None
    """Token to acknowledge it with when it was sent; None: it is not acknowledged."""


def session_frame(session: str, given: JsonObject, *, token: str | None) -> SessionFrame | None:
    """Return a frame of the daemon, encoded; None: it is a sign of life only."""
    kind = str(given.get("kind"))
    if kind == "agent/heartbeat":
        return None
    is_snapshot = kind == "agent/snapshot"
    seq, first = given.get("seq" if is_snapshot else "to"), given.get("from")
    return SessionFrame(
        session=session,
        event=NAMED.get(kind),
        first=first if isinstance(first, int) and not is_snapshot else None,
        position=Position(str(given.get("epoch")), seq if isinstance(seq, int) else 0),
        data=encode({"session": session, "frame": given}),
        token=token,
    )


TakeFrame = Callable[[SessionFrame], bool]
"""Accepts a frame at once; False when the stream is too far behind for it."""


class Seat:
    """The place of one stream at a feed."""

    def __init__(self, take: TakeFrame) -> None:
        self.take: Final = take
        self.left: Final[asyncio.Future[str]] = asyncio.get_running_loop().create_future()
        """The reason why it has no frames any more."""

    def end(self, reason: str) -> None:
        """Report that no more frames come."""
        if not self.left.done():
            self.left.set_result(reason)


class SessionFeed:
    """One subscription of a session, and the streams that share it."""

    def __init__(self, link: DaemonLink, session: str, place: Position | None) -> None:
        """Prepare it; `run` follows.

        Args:
            link: The daemon.
            session: Id of the session.
            place: Where the first stream is; None: it has nothing.
        """
        self._link = link
        self._session = session
        self._place = place
        self._recent: deque[SessionFrame] = deque()
        self._bytes = 0
        self._seats: set[Seat] = set()
        self.task: asyncio.Task[None] | None = None
        """The task that follows."""

    def join(self, take: TakeFrame, place: Position | None) -> Seat | None:
        """Pass on all frames behind a place; None: they are not at hand, or no frame begins there."""
        missed = self._after(place)
        if missed is None:
            return None
        seat = Seat(take)
        self._seats.add(seat)
        for frame in missed:
            self._offer(seat, frame)
        return seat

    def leave(self, seat: Seat) -> bool:
        """Stop passing on frames to a stream; return whether it was the last one."""
        self._seats.discard(seat)
        return not self._seats

    def stop(self) -> None:
        """End the subscription."""
        if self.task is not None:
            _ = self.task.cancel()

    async def run(self) -> None:
        """Follow the session until it ends, the daemon is lost or the last stream has left."""
        reason = LAGGING
        try:
            while reason == LAGGING:
                place = self._place
                reason = await self._link.follow(
                    self._session,
                    epoch=None if place is None else place.epoch,
                    after=None if place is None else place.seq,
                    on_frame=self._take,
                )
        except AgentRefused as error:
            _log.info("The streams of session %s end: %s", self._session, error)
            reason = "lost"
        finally:
            for seat in self._seats:
                seat.end(reason)

    def _after(self, place: Position | None) -> Sequence[SessionFrame] | None:
        if place == self._place:
            return ()
        frames = [*self._recent]
        for number, frame in enumerate(frames):
            is_next = place is not None and frame.first == place.seq + 1
            if is_next and place is not None and frame.position.epoch == place.epoch:
                return frames[number:]
        return None

    def _take(self, _token: str, given: JsonObject) -> None:
        frame = session_frame(self._session, given, token=None)
        if frame is None:
            return
        self._place = frame.position
        self._recent.append(frame)
        self._bytes += len(frame.data)
        while self._bytes > RECENT_BYTES:
            self._bytes -= len(self._recent.popleft().data)
        for seat in tuple(self._seats):
            self._offer(seat, frame)

    def _offer(self, seat: Seat, frame: SessionFrame) -> None:
        if seat in self._seats and not seat.take(frame):
            self._seats.discard(seat)
            seat.end(LAGGING)


class SessionFeeds:
    """The feeds of all sessions that a stream follows. `run` has to run."""

    def __init__(self, link: DaemonLink) -> None:
        self._link = link
        self._feeds: dict[str, SessionFeed] = {}
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        """Own the tasks of the feeds, for as long as it is not cancelled."""
        async with self._tasks:
            _ = await asyncio.Event().wait()

    def join(self, session: str, take: TakeFrame, place: Position | None) -> Seat | None:
        """Share the subscription of a session, which begins with the first stream; as of `SessionFeed.join`."""
        feed = self._feeds.get(session)
        if feed is None:
            feed = self._feeds[session] = SessionFeed(self._link, session, place)
            feed.task = self._tasks.create_task(self._run(session, feed))
        return feed.join(take, place)

    def leave(self, session: str, seat: Seat) -> None:
        """Stop passing on frames to a stream; the subscription ends with the last one."""
        feed = self._feeds.get(session)
        if feed is not None and feed.leave(seat):
            self._forget(session, feed)
            feed.stop()

    async def _run(self, session: str, feed: SessionFeed) -> None:
        try:
            await feed.run()
        finally:
            self._forget(session, feed)

    def _forget(self, session: str, feed: SessionFeed) -> None:
        if self._feeds.get(session) is feed:
            del self._feeds[session]
