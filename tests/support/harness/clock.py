"""A clock that tests move by hand."""

import anyio
from typing_extensions import override


class FakeClock:
    """Starts at a fixed time; `sleep` returns at once and is written down, time moves with it."""

    def __init__(self, now_ms: int = 1_795_000_000_000) -> None:
        self._now_ms = now_ms
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._now_ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await anyio.lowlevel.checkpoint()

    def advance(self, seconds: float) -> None:
        """Move time on."""
        self._now_ms += round(seconds * 1000)


class HeldClock(FakeClock):
    """Stands still; who sleeps is woken when a test has let enough time pass."""

    def __init__(self, now_ms: int = 1_795_000_000_000) -> None:
        super().__init__(now_ms)
        self._moved = anyio.Event()

    @override
    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        until_ms = self.now_ms() + round(seconds * 1000)
        while self.now_ms() < until_ms:
            await self._moved.wait()

    @override
    def advance(self, seconds: float) -> None:
        """Move time on, and wake who waited for it."""
        super().advance(seconds)
        moved, self._moved = self._moved, anyio.Event()
        moved.set()
