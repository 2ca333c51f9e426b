"""Messages that came while the platform was not connected: the history of the bound chats, through the inbox."""

import logging
from collections.abc import Sequence
from typing import Final

import anyio

from agent_core.channels.messaging.delivery.sender import OutboxSender
from agent_core.channels.messaging.port import (
    DeliveryError,
    InboundSink,
    MessagingChannel,
    Target,
)
from agent_core.channels.messaging.store import bindings, inbox
from agent_core.channels.messaging.store.database import Transaction
from tiller_server.channels.bridge.chat_store import ChatStore

BEFORE_MS: Final = 60_000
"""How long before the last message of a place its history is read from."""
QUIET_MS: Final = 3_600_000
"""Time without events after which the history is read, to tell a quiet platform from a deaf connection."""
LOOK_S: Final = 300.0
MOST_PLACES: Final = 200
"""Newest conversations whose history is read."""
_log = logging.getLogger(__name__)


class CatchUp:
    """Reads the history of the bound chats. `run` has to run."""

    def __init__(self, channel: MessagingChannel, store: ChatStore, sender: OutboxSender) -> None:
        self._channel = channel
        self._store = store
        self._sender = sender
        self._wanted = anyio.Event()
        self.last_event_ms = store.clock.now_ms()
        """Time of the last event of the platform."""
        self.last_probe_ms: int | None = None
        """Time at which the history was last read without a failure; None: never."""

    def request(self) -> None:
        """Read the history as soon as possible."""
        self._wanted.set()

    async def run(self, sink: InboundSink) -> None:
        """Read the history when it is requested, for as long as it is not cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            await self._read_all(sink)

    async def watch(self) -> None:
        """Request the history after each hour without events, and forget old messages, until it is cancelled."""
        while True:
            await self._store.clock.sleep(LOOK_S)
            now_ms = self._store.clock.now_ms()
            seen_ms = max(self.last_event_ms, self.last_probe_ms or 0)
            if now_ms - seen_ms >= QUIET_MS:
                self.request()
            await self._store.prune()

    async def _read_all(self, sink: InboundSink) -> None:
        if not self._channel.capabilities.history:
            return
        is_whole = True
        for target, since_ms in await self._store.run(_places):
            await self._sender.wait_rate(target.chat)
            try:
                for message in await self._channel.history(target, since_ms=since_ms):
                    await sink.receive(message)
            except DeliveryError as error:
                is_whole = False
                _log.warning("The history of %s cannot be read: %s", target.chat, error)
        if is_whole:
            self.last_probe_ms = self._store.clock.now_ms()


def _places(tx: Transaction) -> Sequence[tuple[Target, int]]:
    """Return the places whose history is read, with the time from which."""
    places: dict[Target, int] = {}
    for bound in bindings.bindings(tx, limit=MOST_PLACES):
        for target in (Target(chat=bound.chat), bound.target):
            newest_ms = inbox.newest_ms(tx, target)
            since_ms = bound.created_ms if newest_ms is None else newest_ms
            places[target] = max(places.get(target, 0), since_ms - BEFORE_MS)
    return [*places.items()]
