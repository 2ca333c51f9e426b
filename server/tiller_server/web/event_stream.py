"""The events of sessions as a stream of server-sent events, which resumes where the browser left off."""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from agent_core.kernel import JsonObject
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.daemon_link import DaemonLink
from tiller_server.web.options import WebLimits
from tiller_server.web.session_feed import (
    LAGGING,
    Position,
    Seat,
    SessionFeeds,
    SessionFrame,
    session_frame,
)

HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}
MAX_DIGITS: Final = 16
FIRST: Final = b"retry: 1000\n\n"
_log = logging.getLogger(__name__)


def read_positions(text: str | None, sessions: Sequence[str]) -> dict[str, Position]:
    """Read what `id` said: `EPOCH.SEQ` of one session, `SESSION:EPOCH.SEQ` of several. Unreadable words are left out."""
    found: dict[str, Position] = {}
    for word in (text or "").split():
        session = sessions[0] if len(sessions) == 1 else ""
        place = word
        for one in sessions:
            if word.startswith(f"{one}:"):
                session, place = one, word.removeprefix(f"{one}:")
        epoch, dot, number = place.rpartition(".")
        if (
            session
            and epoch
            and dot
            and number.isascii()
            and number.isdigit()
            and len(number) <= MAX_DIGITS
        ):
            found[session] = Position(epoch, int(number))
    return found


def write_positions(positions: Mapping[str, Position], *, are_plain: bool) -> str:
    """Return the `id` of an event."""
    if are_plain:
        return "".join(f"{one.epoch}.{one.seq}" for one in positions.values())
    return " ".join(f"{name}:{one.epoch}.{one.seq}" for name, one in positions.items())


class _FrameQueue:
    """Frames that wait for one reader."""

    def __init__(self) -> None:
        self.size = 0
        """Bytes of them."""
        self._frames: deque[SessionFrame] = deque()
        self._news = anyio.Event()
        self._emptied = anyio.Event()

    def put(self, frame: SessionFrame) -> None:
        """Add a frame."""
        self._frames.append(frame)
        self.size += len(frame.data)
        self.wake()

    def take(self) -> SessionFrame | None:
        """Return and remove the first frame; None: there is none."""
        if not self._frames:
            return None
        frame = self._frames.popleft()
        self.size -= len(frame.data)
        if not self._frames:
            self._emptied.set()
            self._emptied = anyio.Event()
        return frame

    def wake(self) -> None:
        """End `wait`."""
        self._news.set()

    async def wait(self) -> None:
        """Wait for a frame, or for `wake`."""
        self._news = anyio.Event()
        await self._news.wait()

    async def wait_until_empty(self) -> None:
        """Wait until all frames were taken."""
        while self._frames:
            await self._emptied.wait()


class EventResponse(Response):
    """An endless answer with the events of sessions."""

    def __init__(
        self,
        link: DaemonLink,
        feeds: SessionFeeds,
        sessions: Sequence[str],
        positions: Mapping[str, Position],
        *,
        has_plain_ids: bool,
        streams: "set[EventResponse]",
        limits: WebLimits,
    ) -> None:
        """Prepare it.

        Args:
            link: The daemon.
            feeds: The subscriptions that streams share.
            sessions: Ids of those that exist.
            positions: Last events that the reader has, by session.
            has_plain_ids: Whether `id` names no session, because the reader follows one only.
            streams: All open streams, this one among them for as long as it is open.
            limits: Limits of one browser.
        """
        super().__init__(headers={**HEADERS})
        del self.headers["content-length"]
        self._link = link
        self._feeds = feeds
        self._streams = streams
        self._limits = limits
        self._has_plain_ids = has_plain_ids
        self._sessions = sessions
        self._positions = dict(positions)
        self._seen = dict(positions)
        self._seats: dict[str, Seat] = {}
        self._waiting = _FrameQueue()
        self._followed = len(sessions)
        self._is_over = False

    def close(self) -> None:
        """End the stream after what was sent."""
        self._is_over = True
        self._waiting.wake()

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the browser leaves, the sessions end, the daemon is lost or too much waits."""
        self._streams.add(self)
        try:
            await self._serve(receive, send)
        finally:
            self._streams.discard(self)

    async def _serve(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await _send_data(send, FIRST)
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, receive)
            for session in self._sessions:
                group.start_soon(self._follow, session)
            try:
                with suppress(anyio.ClosedResourceError):
                    await self._send(send)
            finally:
                group.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.close()

    async def _follow(self, session: str) -> None:
        reason = LAGGING
        try:
            while reason == LAGGING:
                # A reader that was too slow has its frames before it continues.
                await self._waiting.wait_until_empty()
                reason = await self._share(session)
        except AgentRefused as error:
            _log.info("A stream of session %s ends: %s", session, error)
        self._followed -= 1
        self._waiting.wake()

    async def _share(self, session: str) -> str:
        """Follow with the other streams, and alone until they are at the same event; return why that ended."""
        place = self._seen.get(session)
        if (seat := self._feeds.join(session, self._take, place)) is not None:
            self._seats[session] = seat
        try:
            reason = LAGGING if seat is not None else await self._catch_up(session, place)
            seat = self._seats.get(session)
            return reason if seat is None else await seat.left
        finally:
            if (seat := self._seats.pop(session, None)) is not None:
                self._feeds.leave(session, seat)

    async def _catch_up(self, session: str, place: Position | None) -> str:
        alone = anyio.CancelScope()

        def take(token: str, given: JsonObject) -> None:
            frame = session_frame(session, given, token=token)
            if frame is None or session in self._seats:
                return
            self._put(frame)
            seat = self._feeds.join(session, self._take, frame.position)
            if seat is not None:
                self._seats[session] = seat
                alone.cancel()

        with alone:
            return await self._link.follow(
                session,
                epoch=None if place is None else place.epoch,
                after=None if place is None else place.seq,
                on_frame=take,
                has_window=True,
            )
        return LAGGING

    def _take(self, frame: SessionFrame) -> bool:
        if self._waiting.size > self._limits.max_ahead:
            return False
        self._put(frame)
        return True

    def _put(self, frame: SessionFrame) -> None:
        self._seen[frame.session] = frame.position
        self._waiting.put(frame)
        if self._waiting.size > self._limits.max_buffered:
            _log.info("A stream of session %s ends: its reader is too slow", frame.session)
            self._is_over = True

    async def _send(self, send: Send) -> None:
        while not self._is_over:
            if (frame := self._waiting.take()) is not None:
                await self._send_frame(send, frame)
            elif self._followed == 0:
                return
            else:
                with anyio.move_on_after(self._limits.heartbeat_s) as quiet:
                    await self._waiting.wait()
                if quiet.cancelled_caught:
                    await _send_data(send, b": alive\n\n")

    async def _send_frame(self, send: Send, one: SessionFrame) -> None:
        self._positions[one.session] = one.position
        name = "" if one.event is None else f"event: {one.event}\n"
        place = write_positions(self._positions, are_plain=self._has_plain_ids)
        await _send_data(send, f"{name}id: {place}\ndata: ".encode() + one.data + b"\n\n")
        if one.token is not None:
            self._link.acknowledge(one.token, one.position.seq)


async def _send_data(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
