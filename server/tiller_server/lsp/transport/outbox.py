"""The bounded, non-blocking way out of a connection."""

import asyncio
import enum
import logging
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from tiller_server.lsp.transport.framing import MAX_FRAME_BYTES, frame

HIGH_WATER_BYTES: Final = 1024 * 1024
HIGH_WATER_FRAMES: Final = 512
MAX_STATE_BYTES: Final = 3 * 1024 * 1024
MAX_CONTROL_BYTES: Final = 8 * 1024 * 1024
"""So much may wait for a client that takes nothing for `STALL_LIMIT_S`."""
MAX_WAITING_BYTES: Final = 2 * MAX_FRAME_BYTES
"""So much may wait for any client, also for one that reads: two of the largest answers."""
STALL_LIMIT_S: Final = 30.0
CONFIRM_S: Final = 1.0
"""A loop that was busy has not written either: it gets so long to write before the client is blamed."""

_EDIT: Final = b'"workspace/applyEdit"'
_HEAD_BYTES: Final = 128
_ID: Final = re.compile(rb'"id"\s*:\s*("[^"\\]*"|-?[0-9]+)')
_BATCH_BYTES: Final = 64 * 1024
_SLICE_BYTES: Final = 64 * 1024
"""Progress is seen slice by slice: a client that takes one within `STALL_LIMIT_S` reads."""

_log = logging.getLogger(__name__)


class Lane(enum.Enum):
    """Admission class of a message, for a client that reads slowly."""

    CONTROL = "control"
    """Responses, requests of ours, cancellations: never refused while the client reads."""
    STATE = "state"
    """Events of state: refused only while `MAX_STATE_BYTES` or more wait."""
    DELTA = "delta"
    """Deltas that can be merged and sent later: refused above the high-water mark."""


class Hiding(Protocol):
    """Redactor that removes secrets from texts; never raises."""

    @property
    def holds_any(self) -> bool:
        """Whether there is anything to look for."""
        ...

    def held(self, text: str, /) -> str:
        """Return a text without the secrets that the program holds."""
        ...


class Sink(Protocol):
    """Where bytes go. An `asyncio.StreamWriter` is one."""

    def write(self, data: bytes, /) -> None:
        """Accept bytes without waiting."""
        ...

    async def drain(self) -> None:
        """Wait until there is room for more; raises OSError when the other side is gone."""
        ...

    def close(self) -> None:
        """Close once everything taken has gone out."""
        ...

    async def wait_closed(self) -> None:
        """Wait until that is so; may raise OSError when the other side went first."""
        ...


@dataclass(slots=True)
class _Edge:
    """Transformations of every message before it is queued."""

    hiding: Hiding | None = None
    turn: Callable[[bytes], bytes] = lambda body: body


@dataclass(slots=True)
class _Stall:
    """How long the client has taken nothing, and when it is given up for that."""

    give_up: Callable[[], None]
    limit_s: float
    moved_at: float = 0.0
    check: asyncio.TimerHandle | None = None


class Outbox:
    """Queues messages for one client and writes them from a task of its own.

    A lane decides admission, never order: admitted messages leave in the order of `put`. So a
    response never overtakes the events that it must follow, nor a run's first event the answer
    that announced it, without any bookkeeping. The price is that an answer may wait behind one
    high-water mark of deltas, which any client that reads takes quickly.

    Owned by one event loop; no method may be called from another thread.
    """

    def __init__(
        self, *, on_overflow: Callable[[], None], stall_limit_s: float = STALL_LIMIT_S
    ) -> None:
        """Start empty.

        Args:
            on_overflow: Called once, when the client must be given up: `MAX_CONTROL_BYTES` of control
                messages wait and it takes nothing, or `MAX_WAITING_BYTES` of them wait.
            stall_limit_s: How long a client may take nothing while that much waits for it.
        """
        # One queue for all lanes: a lane decides admission, never order (decision 0004).
        self._queue: deque[tuple[bytes, Lane]] = deque()
        self._stall = _Stall(on_overflow, stall_limit_s)
        self._bytes = 0
        self._frames = 0
        self._control_bytes = 0
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._state: _State = _State.OPEN
        self._edge = _Edge()

    def hide(self, hiding: Hiding) -> None:
        """Remove the program's secrets from every message from now on, edits excepted: the last safeguard."""
        self._edge.hiding = hiding

    def turn(self, turn: Callable[[bytes], bytes]) -> None:
        """Set the function that makes the last change to every message."""
        self._edge.turn = turn

    @property
    def pending_bytes(self) -> int:
        """Bytes of the messages that are not written yet."""
        return self._bytes

    @property
    def pending_frames(self) -> int:
        """Number of messages that are not written yet."""
        return self._frames

    def put(self, body: bytes, lane: Lane) -> bool:
        """Queue an encoded message; say whether it was taken.

        Never waits and never raises. A refused message is the caller's to merge with later
        ones and to offer again after `wait_writable`; a closed outbox refuses everything.
        """
        if self._state is not _State.OPEN or not self._admits(lane):
            return False
        if self._frames == 0:
            self._stall.moved_at = asyncio.get_running_loop().time()
        body = self._edge.turn(self._clean(body))
        self._queue.append((body, lane))
        self._count(len(body), lane, frames=1)
        self._wake.set()
        return True

    def writable(self) -> bool:
        """Whether a message of any lane would be taken now."""
        return self._state is _State.OPEN and not self._is_above_mark()

    async def wait_writable(self) -> None:
        """Wait until `writable`.

        Raises:
            ConnectionError: The outbox has been closed.
        """
        while not self.writable():
            if self._state is not _State.OPEN:
                raise ConnectionError("the connection is closed")
            self._room.clear()
            await self._room.wait()

    def stalled_s(self) -> float:
        """Seconds for which the client has taken nothing although something waits for it."""
        if self._frames == 0:
            return 0.0
        return asyncio.get_running_loop().time() - self._stall.moved_at

    async def drain_to(self, sink: Sink) -> None:
        """Write to the sink until `finish` or `close`. One task runs this, once.

        Raises:
            OSError: The other side is gone. The outbox is closed then.
        """
        try:
            while batch := await self._next_batch():
                await self._write(sink, b"".join(frame(body) for body, _ in batch))
                for body, lane in batch:
                    self._count(-len(body), lane, frames=-1)
                if not self._is_above_mark():
                    self._room.set()
        finally:
            self.close()

    def finish(self) -> None:
        """Refuse further messages; `drain_to` returns when the queued ones have been written."""
        if self._state is _State.OPEN:
            self._state = _State.FINISHING
        self._wake.set()
        self._room.set()

    def close(self) -> None:
        """Refuse further messages and discard the queued ones."""
        self._state = _State.CLOSED
        self._queue.clear()
        self._bytes = self._frames = self._control_bytes = 0
        if self._stall.check is not None:
            self._stall.check.cancel()
        self._wake.set()
        self._room.set()

    def _is_above_mark(self) -> bool:
        return self._bytes >= HIGH_WATER_BYTES or self._frames >= HIGH_WATER_FRAMES

    def _admits(self, lane: Lane) -> bool:
        # The message itself does not count: one big answer to a client that reads must pass.
        match lane:
            case Lane.DELTA:
                return not self._is_above_mark()
            case Lane.STATE:
                return self._bytes < MAX_STATE_BYTES
            case Lane.CONTROL:
                return self._admits_control()

    def _admits_control(self) -> bool:
        if self._control_bytes >= MAX_WAITING_BYTES:
            self._give_up()
            return False
        stall = self._stall
        if self._control_bytes < MAX_CONTROL_BYTES or self.stalled_s() < stall.limit_s:
            return True
        if stall.check is None:
            loop = asyncio.get_running_loop()
            delay_s = min(CONFIRM_S, stall.limit_s)
            stall.check = loop.call_later(delay_s, self._confirm_stall, stall.moved_at)
        return True

    def _confirm_stall(self, moved_at: float) -> None:
        self._stall.check = None
        if self._state is not _State.CLOSED and self._stall.moved_at == moved_at:
            self._give_up()

    def _give_up(self) -> None:
        _log.error(
            "Giving up a client that does not read: %d bytes of answers wait for it, and it has taken none for %.1f s.",
            self._control_bytes,
            self.stalled_s(),
        )
        self.close()
        self._stall.give_up()

    def _clean(self, body: bytes) -> bytes:
        """Return a message without secrets. An edit keeps its text, which is written to the user's file."""
        hiding = self._edge.hiding
        if hiding is None or not hiding.holds_any or _EDIT in body[:_HEAD_BYTES]:
            return body
        text = body.decode()
        clean = hiding.held(text)
        return body if clean is text or clean == text else _whole(clean, body)

    def _count(self, size: int, lane: Lane, *, frames: int) -> None:
        if self._state is _State.CLOSED:
            return
        self._bytes += size
        self._frames += frames
        if lane is Lane.CONTROL:
            self._control_bytes += size

    async def _next_batch(self) -> list[tuple[bytes, Lane]]:
        """Wait for messages and remove a batch from the queue; empty when the outbox has ended."""
        while not self._queue and self._state is _State.OPEN:
            self._wake.clear()
            await self._wake.wait()
        batch: list[tuple[bytes, Lane]] = []
        size = 0
        while self._queue and size < _BATCH_BYTES:
            batch.append(self._queue.popleft())
            size += len(batch[-1][0])
        return batch

    async def _write(self, sink: Sink, data: bytes) -> None:
        # In slices, so that the transport never holds a second copy of a large message.
        for start in range(0, len(data), _SLICE_BYTES):
            sink.write(data[start : start + _SLICE_BYTES])
            await sink.drain()
            self._stall.moved_at = asyncio.get_running_loop().time()


def _whole(clean: str, body: bytes) -> bytes:
    """Return a message without secrets; when nothing can be told, at least whoever asked gets an answer."""
    if clean.startswith("{"):
        return clean.encode()
    found = _ID.search(body[:_HEAD_BYTES])
    if found is None:
        return b'{"jsonrpc":"2.0","method":"$/withheld"}'
    error = b'{"code":-32603,"message":"[withheld: the redactor failed]"}'
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (found[1], error)


class _State(enum.Enum):
    OPEN = "open"
    FINISHING = "finishing"
    CLOSED = "closed"
