"""One writer per real path: those who want to write the same file wait for one another."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct


class _Turn(Struct):
    lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)
    users: int = 0


class PathLocks:
    """Locks by path, kept only while somebody holds or awaits them."""

    def __init__(self) -> None:
        self._turns: dict[Path, _Turn] = {}

    @asynccontextmanager
    async def hold(self, path: Path) -> AsyncGenerator[None]:
        """Hold a path; others wait in the order in which they came."""
        turn = self._turns.setdefault(path, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if turn.users == 0:
                del self._turns[path]

    @asynccontextmanager
    async def hold_all(self, *paths: Path) -> AsyncGenerator[None]:
        """Hold several paths; always in the same order, so that two holders never wait for one another."""
        async with AsyncExitStack() as stack:
            for path in sorted(set(paths)):
                await stack.enter_async_context(self.hold(path))
            yield
