"""A clock that moves on by itself when nothing else can happen, and a sender of an outbox on it."""

import asyncio
import heapq
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeVar

from typing_extensions import override

from agent_core.channels.messaging.delivery.sender import OutboxSender
from agent_core.channels.messaging.port import Capabilities
from agent_core.channels.messaging.store.database import MessagingDatabase, Transaction
from tests.support.channels.memory_platform import CAPABILITIES, MemoryChannel, MemoryPlatform
from tests.support.harness.clock import FakeClock

T = TypeVar("T")
TURNS = 12
"""Turns of the loop after which every task that can go on has gone on."""


class TimelineClock(FakeClock):
    """Time stands still while anything goes on, and moves to the next sleeper otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._sleepers: list[tuple[int, int, asyncio.Event]] = []
        self._numbers = count()

    @override
    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        until_ms = self.now_ms() + max(1, round(seconds * 1000))
        heapq.heappush(self._sleepers, (until_ms, next(self._numbers), woken))
        await woken.wait()

    def move_on(self, *, most_ms: int) -> bool:
        """Wake the next sleeper that is due until a time; return False when there is none."""
        if not self._sleepers or self._sleepers[0][0] > most_ms:
            return False
        until_ms, _, woken = heapq.heappop(self._sleepers)
        self.advance(max(0, until_ms - self.now_ms()) / 1000)
        woken.set()
        return True


class CountedDatabase(MessagingDatabase):
    """A database that counts the transactions that are going on."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, channel="memory", account="app")
        self.active = 0

    @override
    async def run(self, work: Callable[[Transaction], T]) -> T:
        self.active += 1
        try:
            return await super().run(work)
        finally:
            self.active -= 1


@dataclass(slots=True, kw_only=True)
class Timeline:
    """An outbox with its sender, on a platform and a clock of its own."""

    clock: TimelineClock
    platform: MemoryPlatform
    database: CountedDatabase
    sender: OutboxSender

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Write to the store, and wake the sender."""
        result = await self.database.run(work)
        self.sender.notify()
        return result

    async def settle(self) -> None:
        """Wait until nothing goes on any more without time."""
        turns = 0
        while turns < TURNS:
            await asyncio.sleep(0.0005 if self.database.active else 0)
            turns = 0 if self.database.active else turns + 1

    async def run_for(self, seconds: float) -> None:
        """Let time pass."""
        end_ms = self.clock.now_ms() + round(seconds * 1000)
        await self.settle()
        while self.clock.move_on(most_ms=end_ms):
            await self.settle()
        self.clock.advance((end_ms - self.clock.now_ms()) / 1000)


@asynccontextmanager
async def timeline(
    path: Path, *, capabilities: Capabilities = CAPABILITIES, platform: MemoryPlatform | None = None
) -> AsyncGenerator[Timeline]:
    """Run a sender for as long as the block; with a platform it is the next process before that one."""
    clock = TimelineClock() if platform is None else platform.clock
    assert isinstance(clock, TimelineClock)
    given = platform or MemoryPlatform(clock, capabilities)
    database = CountedDatabase(path)
    await database.open()
    sender = OutboxSender(database, MemoryChannel(given), clock=clock)
    task = asyncio.get_running_loop().create_task(sender.run())
    try:
        yield Timeline(clock=clock, platform=given, database=database, sender=sender)
    finally:
        task.cancel()
        await asyncio.wait([task])
        database.close()
