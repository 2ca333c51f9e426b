"""A session's log that a test can hold up, fail and read, and from which a session can be opened again."""

from collections.abc import Sequence

import anyio

from agent_core.kernel import SessionId
from agent_core.kernel.errors import StorageUnavailable
from agent_core.storage import OpenedSession, Recovery, SessionLog
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript.entries import AnyEntry, ColdEntry, Header, WholeEntry
from tests.support.harness.clock import FakeClock


class HeldLog:
    """Writes into memory; while it is held, writing waits."""

    def __init__(self, inner: SessionLog) -> None:
        self._inner = inner
        self.failures = 0
        """How many of the next writes fail."""
        self.written: list[AnyEntry] = []
        self.reached = anyio.Event()
        """Somebody writes."""
        self._released = anyio.Event()
        self._released.set()

    def hold(self) -> None:
        """Let everybody who writes wait from now on."""
        self.reached, self._released = anyio.Event(), anyio.Event()

    def release(self) -> None:
        """Let them go on."""
        self._released.set()

    @property
    def header(self) -> Header:
        return self._inner.header

    @property
    def location(self) -> None:
        return None

    @property
    def attachments(self) -> None:
        return None

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        self.reached.set()
        await self._released.wait()
        if self.failures:
            self.failures -= 1
            message = "no space left on device; free some and go on"
            raise StorageUnavailable(message)
        self.written.extend(entries)
        await self._inner.append(entries)

    def cool(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        return tuple(entries)

    async def load(self, entries: Sequence[ColdEntry]) -> tuple[WholeEntry, ...]:
        return await self._inner.load(entries)

    async def sync(self) -> None:
        await self._inner.sync()

    async def close(self) -> None:
        await self._inner.close()


async def held(entries: Sequence[AnyEntry] = ()) -> tuple[HeldLog, OpenedSession]:
    """Make a log, and what a session is built from: with the entries that another log was left with, if any."""
    clock = FakeClock()
    header = Header(id=SessionId("s"), at_ms=clock.now_ms(), cwd="/project")
    log = HeldLog(await MemoryStore().create(header))
    log.written.extend(entries)
    return log, OpenedSession(log=log, entries=tuple(entries), recovery=Recovery())


class NoDiskFailures:
    """A listener for tests in which the disk works: a failure of it fails the test."""

    def failed(self, error: object, /) -> None:
        raise AssertionError(error)

    def works_again(self, entries: int, /) -> None:
        raise AssertionError(entries)
