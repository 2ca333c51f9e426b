"""Does something again whenever a session has news, but not for each bit of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from agent_core.events import Event, EventSubscription
from agent_core.session import AgentSession


class DebouncedWatch:
    """Follows sessions for one editor."""

    def __init__(self, *matters: type[Event], pause_s: float) -> None:
        """Begin with no session.

        Args:
            matters: The events that are news.
            pause_s: How long news are collected.
        """
        self._matters: Final = matters
        self._pause_s: Final = pause_s
        self._readers: list[EventSubscription] = []

    async def follow(
        self,
        session: AgentSession,
        renew: Callable[[], Awaitable[None]],
        *,
        news: asyncio.Event | None = None,
    ) -> None:
        """Call `renew` after news, one call at a time, until the session is over or this is closed.

        Args:
            session: The session.
            renew: Callback; its exceptions are not caught.
            news: Event to set for news that the session does not publish; one that is set already counts.
        """
        news = news or asyncio.Event()
        reader = session.subscribe(only=self._matters)
        self._readers.append(reader)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._renew, news, renew)
                async for _ in reader:
                    news.set()
                group.cancel_scope.cancel()
        finally:
            self._readers.remove(reader)

    def close(self) -> None:
        """Stop; the editor has left."""
        for reader in self._readers:
            reader.close()

    async def _renew(self, news: asyncio.Event, renew: Callable[[], Awaitable[None]]) -> None:
        while True:
            await news.wait()
            await asyncio.sleep(self._pause_s)
            news.clear()
            await renew()
