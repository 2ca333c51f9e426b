"""Gathers what changed until somebody asks: a burst becomes one report, however large it is."""

import asyncio
import threading
from pathlib import Path

import anyio

MOST_PATHS = 1000
"""With more of them a report says to look at everything anew."""
PAUSE_S = 0.05
"""Without a change, before a burst counts as over."""
MANY_CHANGES = 4096
"""After so many without a pause the system may have dropped some."""
BURST_S = 0.5
"""After which a burst is reported although it goes on."""


class PathChangeBuffer:
    """The changes below one watched path. `put` may be called from any thread; the rest from the event loop's."""

    def __init__(self, watched: Path) -> None:
        """Begin without news, in a running event loop."""
        self._watched = watched
        self._loop = asyncio.get_running_loop()
        self._some = asyncio.Event()
        self._lock = threading.Lock()
        self._paths: set[Path] = set()
        self._count = 0

    def put(self, path: Path) -> None:
        """Add a path that changed."""
        with self._lock:
            is_first = not self._paths
            self._count += 1
            if len(self._paths) < MOST_PATHS:
                self._paths.add(path)
            else:
                self._paths = {self._watched}
        if is_first and not self._loop.is_closed():
            _ = self._loop.call_soon_threadsafe(self._some.set)

    async def next(self) -> frozenset[Path]:
        """Wait for a change and for the end of its burst, and give the paths."""
        _ = await self._some.wait()
        end = anyio.current_time() + BURST_S
        seen = -1
        while seen != self._count and anyio.current_time() < end:
            seen = self._count
            await anyio.sleep(PAUSE_S)
        # Cleared first: what comes from here on sets it again.
        self._some.clear()
        with self._lock:
            paths, self._paths = self._paths, set()
            if self._count > MANY_CHANGES:
                paths.add(self._watched)
            if seen == self._count:
                self._count = 0
        return frozenset(paths)
