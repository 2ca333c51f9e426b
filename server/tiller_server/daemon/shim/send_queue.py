"""Frames on their way to one descriptor, and which of them have not begun to go out."""

from collections import deque
from collections.abc import Callable

PIECE_BYTES = 64 * 1024


class Outgoing:
    """A queue of frames, without a bound of its own: its producer checks `waiting_bytes` before it adds a frame."""

    def __init__(self) -> None:
        self.waiting_bytes = 0
        self._frames: deque[bytes] = deque()
        self._sent = 0

    def put(self, frame: bytes) -> None:
        """Append a frame to the queue."""
        self._frames.append(frame)
        self.waiting_bytes += len(frame)

    def send(self, write: Callable[[memoryview], int]) -> None:
        """Write as much as the other side takes now.

        Raises:
            OSError: The other side is gone.
        """
        while self._frames:
            first = self._frames[0]
            view = memoryview(first)[self._sent : self._sent + PIECE_BYTES]
            try:
                taken = write(view)
            except BlockingIOError:
                return
            self._sent += taken
            self.waiting_bytes -= taken
            if self._sent == len(first):
                self._frames.popleft()
                self._sent = 0

    def take_unsent(self) -> list[bytes]:
        """Return the frames of which no byte went out, and forget all."""
        unsent = list(self._frames)[1 if self._sent else 0 :]
        self._frames.clear()
        self._sent = self.waiting_bytes = 0
        return unsent
