"""What the provider was asked, and what became of each answer."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.provider.http import HttpRequest
from tests.support.provider.script import Json


@dataclass(slots=True, kw_only=True)
class Entry:
    """One request; the answer's part grows while it is sent."""

    request: HttpRequest
    body: object
    at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    """When the whole answer had been written, or could not be any further."""
    sent_bytes: int = 0
    finished: bool = False
    """The whole answer has been sent, as scripted."""
    client_gone: bool = False
    """The client closed its end before the answer was whole."""

    def as_json(self, *, with_body: bool) -> Json:
        """Give what `/_ctl/log` shows."""
        return {
            "method": self.request.method,
            "path": self.request.path,
            "headers": self.request.masked_headers(),
            "body": self.body if with_body else None,
            "head_at": self.request.head_at,
            "at": self.at,
            "ended_at": self.ended_at,
            "sent_bytes": self.sent_bytes,
            "finished": self.finished,
            "client_gone": self.client_gone,
        }


class Journal:
    """All requests in order of arrival; others can wait for it to grow."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._changed = asyncio.Event()

    def add(self, entry: Entry) -> None:
        """Take a new request."""
        self.entries.append(entry)
        self.touch()

    def touch(self) -> None:
        """Wake those who wait, after an entry has changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    def counts(self) -> dict[str, int]:
        """Count requests, finished answers and lost clients."""
        return {
            "requests": len(self.entries),
            "finished": sum(entry.finished for entry in self.entries),
            "gone": sum(entry.client_gone for entry in self.entries),
        }

    async def until(self, reached: Callable[[dict[str, int]], bool], *, timeout_s: float) -> bool:
        """Wait until the counts are as wanted; False when that took too long."""
        try:
            async with asyncio.timeout(timeout_s):
                while not reached(self.counts()):
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True
