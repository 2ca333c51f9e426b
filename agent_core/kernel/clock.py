"""Time as a port, so that tests control it: the only place that asks the system for it."""

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

import anyio

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = timedelta(days=1) // timedelta(milliseconds=1)


class Clock(Protocol):
    """Wall time for what is written down, monotonic time for what is measured."""

    def now_ms(self) -> int:
        """Unix time in whole milliseconds."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that only go forward; the zero means nothing."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellable."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Unix time in whole milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; cancellable."""
        await anyio.sleep(seconds)


def rfc3339(at_ms: int) -> str:
    """Write a time as RFC 3339 with milliseconds in UTC, as events and entries carry it."""
    return f"{_second(at_ms // 1000)}.{at_ms % 1000:03d}Z"


@lru_cache(maxsize=1)  # many events are written in one second
def _second(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%S}"


def parse_rfc3339(text: str) -> int:
    """Read a time written by any program as Unix milliseconds.

    Raises:
        ValueError: The text is no ISO 8601 time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    # Whole files pass through here: the parts of a difference are at hand sooner than a float of it.
    since = moment - _EPOCH
    return since.days * _DAY_MS + since.seconds * 1000 + round(since.microseconds / 1000)
