"""A subscription: a session's events as frames on the client's own progress token."""

import asyncio
from collections.abc import Callable
from typing import Final

from agent_core.events import (
    BashEnded,
    BashOutput,
    BashStarted,
    Delta,
    Event,
    Stamped,
    ToolInputDelta,
)
from agent_core.kernel import JsonValue
from agent_core.kernel.json import encode as to_json
from agent_core.session import AgentSession
from server.lsp import pictures
from server.lsp.outbox import Lane
from server.lsp.protocol import Connection
from server.lsp.work_done import ProgressToken

FLUSH_MS: Final = 40
FLUSH_MIN_MS: Final = 16
FLUSH_MAX_MS: Final = 250
HEARTBEAT_S: Final = 15.0
LAGGING_S: Final = 30.0
"""A client that has taken nothing for so long is left behind: it subscribes again."""

FRAME_EVENTS: Final = 256
"""A frame with more events is split, so that a client can work in between."""


def of_run(run: str) -> Callable[[Event], bool]:
    """Choose the events of one run."""
    return lambda event: getattr(event, "run", None) == run


def of_bash(event: Event) -> bool:
    """Choose the events of the user's own command."""
    return isinstance(event, BashStarted | BashOutput | BashEnded)


class Subscription:
    """Sends what a session tells to one client, in order and without a hole."""

    def __init__(
        self,
        connection: Connection,
        session: AgentSession,
        *,
        token: ProgressToken,
        epoch: str,
        detail: str = "full",
        flush_ms: int | None = None,
        only: Callable[[Event], bool] | None = None,
    ) -> None:
        self._connection = connection
        self._session = session
        self._token = token
        self._epoch = epoch
        self._detail = detail
        self._only = only
        self._flush_s = min(max(flush_ms or FLUSH_MS, FLUSH_MIN_MS), FLUSH_MAX_MS) / 1000
        # Listening first may tell things of its own: they come after this number.
        self._sent = session.info.snapshot().seq
        self._reader = session.subscribe()

    @property
    def last(self) -> int:
        """The newest event that was sent."""
        return self._sent

    def send_snapshot(self, picture: dict[str, JsonValue]) -> None:
        """Send the picture that the events to come continue."""
        picture = {**picture, "seq": self._sent}
        _ = self._send("agent/snapshot", {"seq": self._sent, "snapshot": picture}, Lane.CONTROL)

    async def run(self) -> str:
        """Send until the session ends or the client lags; gives the reason."""
        try:
            while True:
                if not await self._wait():
                    _ = self._flush(self._reader.take_now())
                    return "closed"
                if not await self._has_room() or not self._flush(self._reader.take_now()):
                    return "lagging"
        finally:
            self._reader.close()

    def flush_now(self) -> None:
        """Send at once what has been told so far: an answer that must follow it comes next.

        It goes the way of answers, so that even a client that reads slowly gets them in order.
        """
        _ = self._flush(self._reader.take_now(), Lane.CONTROL)

    def close(self) -> None:
        """End the subscription."""
        self._reader.close()

    async def _wait(self) -> bool:
        """Wait until there is something worth a frame; False when the session is over."""
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._reader.wait()
                break
            except TimeoutError:
                self._heartbeat()
        # The first delta of an item goes out at once; after it they gather, unless something else happens.
        if not self._reader.urgent and not self._reader.closed:
            try:
                async with asyncio.timeout(self._flush_s):
                    await self._reader.wait_urgent()
            except TimeoutError:
                pass
        return not self._reader.closed

    async def _has_room(self) -> bool:
        """Wait for the client to read; False when it has read nothing for too long."""
        outbox = self._connection.outbox
        while not outbox.writable():
            try:
                async with asyncio.timeout(1.0):
                    await outbox.wait_writable()
            except TimeoutError:
                if outbox.stalled_s() > LAGGING_S:
                    return False
        return True

    def _flush(self, events: tuple[Stamped, ...], lane: Lane = Lane.STATE) -> bool:
        """Send events; False when the connection refused them, after which a hole would follow."""
        if not events:
            return True
        if self._reader.missed() and not self._gap(events[0].first, lane):
            return False
        return all(
            self._frame(events[start : start + FRAME_EVENTS], lane)
            for start in range(0, len(events), FRAME_EVENTS)
        )

    def _frame(self, events: tuple[Stamped, ...], lane: Lane) -> bool:
        shown = [pictures.event(one) for one in events if self._is_shown(one)]
        first, last = self._sent + 1, events[-1].seq
        self._sent = last
        if not shown and self._only is not None:
            return True
        return self._send("agent/events", {"from": first, "to": last, "events": shown}, lane)

    def _is_shown(self, stamped: Stamped) -> bool:
        if self._only is not None and not self._only(stamped.event):
            return False
        if self._detail == "status":
            return not isinstance(stamped.event, Delta)
        return self._detail == "full" or not isinstance(stamped.event, ToolInputDelta)

    def _gap(self, first: int, lane: Lane) -> bool:
        """Tell which deltas were dropped; the ended events still have the whole."""
        start, end = self._sent + 1, first - 1
        if end < start:
            return True
        self._sent = end
        return self._send("agent/gap", {"from": start, "to": end}, lane)

    def _heartbeat(self) -> None:
        _ = self._send("agent/heartbeat", {"seq": self._sent}, Lane.DELTA)

    def _send(self, kind: str, fields: dict[str, JsonValue], lane: Lane) -> bool:
        value = {"kind": kind, "session": self._session.id, "epoch": self._epoch, **fields}
        body = to_json(
            {
                "jsonrpc": "2.0",
                "method": "$/progress",
                "params": {"token": self._token, "value": value},
            }
        )
        return self._connection.send_encoded(body, lane)
