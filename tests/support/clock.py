"""A clock that tests move by hand."""

import anyio


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
