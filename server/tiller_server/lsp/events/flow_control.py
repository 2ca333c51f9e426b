"""How much a client that acknowledges may be sent before it has."""

from collections import deque
from typing import Final

import anyio

UNACKNOWLEDGED_BYTES: Final = 256 * 1024


class SendWindow:
    """Counts the bytes of deltas that were sent and not acknowledged."""

    def __init__(self) -> None:
        self._sent: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._bell = anyio.Event()

    @property
    def is_used_up(self) -> bool:
        """Whether no more deltas may be sent for now."""
        return self._bytes >= UNACKNOWLEDGED_BYTES

    def spend(self, to: int, size: int) -> None:
        """Count deltas that were sent, in a frame that ends with `to`."""
        if size:
            self._sent.append((to, size))
            self._bytes += size

    def acknowledge(self, seq: int) -> None:
        """Record that the client has everything up to a number; an older one than before changes nothing."""
        while self._sent and self._sent[0][0] <= seq:
            self._bytes -= self._sent.popleft()[1]
        bell, self._bell = self._bell, anyio.Event()
        bell.set()

    async def wait(self) -> None:
        """Wait for the next acknowledgement."""
        await self._bell.wait()
