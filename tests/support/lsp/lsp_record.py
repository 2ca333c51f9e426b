"""Everything a server sent, in the order in which it came, and waiting for what comes next."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

USUAL_S = 30.0
"""A limit, not a measure: a busy machine is slow without being wrong."""


class ConnectionLostError(ConnectionError):
    """The server went away while something was awaited from it."""


@dataclass(slots=True, kw_only=True)
class _Waiter:
    wanted: Callable[[Json], bool]
    found: asyncio.Future[Json | None]


class Record:
    """The messages of one server."""

    def __init__(self) -> None:
        self.received: list[Json] = []
        """Every message of the server, in the order in which it came."""
        self.arrived_at: list[float] = []
        """When each came, by the monotonic clock."""
        self.complaints: list[str] = []
        """What the server did against the protocol; a test ends with asserting that there is none."""
        self.lost: str | None = None
        """Why no more messages come; None while they do."""
        self._waiters: list[_Waiter] = []

    async def wait_for(
        self, wanted: Callable[[Json], bool], *, timeout_s: float = USUAL_S, after: int = -1
    ) -> Json:
        """Give the first message that fits, of those that came already or the next to come.

        Args:
            after: Pass over the messages up to this index of `received`.

        Raises:
            ConnectionLostError: No such message can come any more.
            TimeoutError: None has come in time.
        """
        for message in self.received[after + 1 :]:
            if wanted(message):
                return message
        found: asyncio.Future[Json | None] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(wanted=wanted, found=found)
        if self.lost is not None:
            found.set_result(None)
        self._waiters.append(waiter)
        try:
            return await self.settled(found, "the wanted message", timeout_s=timeout_s)
        finally:
            self._waiters.remove(waiter)

    async def wait_method(
        self, method: str, *, timeout_s: float = USUAL_S, after: int = -1, **params: Any
    ) -> Json:
        """Give the first request or notification of this method whose params hold these values."""

        def wanted(message: Json) -> bool:
            held = message.get("params") or {}
            return message.get("method") == method and all(
                name in held and held[name] == value for name, value in params.items()
            )

        return await self.wait_for(wanted, timeout_s=timeout_s, after=after)

    def of(self, method: str) -> list[Json]:
        """Give the params of every request and notification of a method so far."""
        return [one.get("params") or {} for one in self.received if one.get("method") == method]

    def index_of(self, message: Json) -> int:
        """Give the place of a message in the order of arrival."""
        return next(index for index, one in enumerate(self.received) if one is message)

    async def settled(
        self, future: asyncio.Future[Json | None], what: str, *, timeout_s: float
    ) -> Json:
        """Wait for a message that is promised, and say what did come when it does not."""
        await asyncio.wait({future}, timeout=timeout_s)
        if not future.done():
            message = f"{what} has not come within {timeout_s} s; {self._recently()}"
            raise TimeoutError(message)
        found = future.result()
        if found is None:
            message = f"{self.lost} before {what} came; {self._recently()}"
            raise ConnectionLostError(message)
        return found

    def _keep(self, message: Json) -> None:
        self.received.append(message)
        self.arrived_at.append(time.monotonic())

    def _wake(self, message: Json) -> None:
        for waiter in self._waiters:
            if not waiter.found.done() and waiter.wanted(message):
                waiter.found.set_result(message)

    def _end(self, why: str) -> None:
        self.lost = why
        for waiter in self._waiters:
            if not waiter.found.done():
                waiter.found.set_result(None)

    def _recently(self) -> str:
        last = [one.get("method", f"answer {one.get('id')}") for one in self.received[-8:]]
        return f"last came {last}, {len(self.received)} messages in all"
