"""The editor of the benchmarks: counts what it is sent and times what it asks."""

import time
from pathlib import Path
from typing import Any, NamedTuple

from typing_extensions import override

from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import Profile
from tests.support.lsp.lsp_subscription import Subscription

LONG_S = 120.0


class Timed(NamedTuple):
    """One request: when it was sent, when its answer came, and what that was."""

    sent: float
    answered: float
    result: Any

    @property
    def took_s(self) -> float:
        """Seconds from request to answer."""
        return self.answered - self.sent


class Client(RawClient):
    """A scripted editor that counts bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_received = 0

    @override
    def bytes_came(self, raw: bytes) -> None:
        self.bytes_received += len(raw)
        super().bytes_came(raw)

    async def introduce(self, profile: Profile, root: Path) -> float:
        """Initialize; gives when the answer came, by the monotonic clock."""
        await self.initialize(profile, root=root, timeout_s=LONG_S)
        return self.arrived_at[
            next(place for place, one in enumerate(self.received) if one.get("id") == 1)
        ]

    async def timed(self, method: str, params: Any = None) -> Timed:
        """Send a request and wait for its result."""
        sent = time.monotonic()
        call = self.call(method, params)
        result = await call.result(timeout_s=LONG_S)
        message = call.message
        place = len(self.received) - 1
        while self.received[place] is not message:
            place -= 1
        return Timed(sent, self.arrived_at[place], result)

    async def prompt(self, text: str = "go on", **params: Any) -> Timed:
        """Say something."""
        content = [{"type": "text", "text": text}]
        return await self.timed("agent/prompt", {"content": content, **params})

    async def open_session(self, which: str = "new") -> Timed:
        """Open a session."""
        return await self.timed("agent/session/open", {"session": which})

    async def follow(self) -> Subscription:
        """Subscribe to the session that is open, and wait for its snapshot."""
        stream = self.subscribe()
        await stream.ready(timeout_s=LONG_S)
        return stream


async def ended(stream: Subscription, taken: Timed) -> dict[str, Any]:
    """Wait for the end of the run that a prompt began.

    Raises:
        RuntimeError: It did not complete: its figures would mean nothing.
    """
    event = await stream.wait(type="run.ended", run=taken.result["run"], timeout_s=LONG_S)
    if event["status"] != "completed":
        message = f"a run ended {event['status']!r}: {event.get('error')}"
        raise RuntimeError(message)
    return event
