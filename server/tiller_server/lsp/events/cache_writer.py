"""Writes a session's events to its replay cache, in order and off the loop, and says how far they may be sent."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from agent_core.kernel.threads import run_abandonable
from agent_core.kernel.values import Value
from tiller_server.lsp.events.cache_file import CacheMark, NumberedEvent, ReplayFile

RESERVED: Final = 20_000  # decision 0026
"""How many numbers are marked as used ahead of their use: deltas take numbers, and are not written."""
EARLY_EVENTS: Final = 512
"""How many events are kept while the session has no file yet: nothing was said in it."""
SLOW_S: Final = 2.0
"""A disk that takes longer is not waited for."""
WAITING_BYTES: Final = 8 * 1024 * 1024
"""Nor one for which so much waits."""
CLOSE_S: Final = 3.0

_log = logging.getLogger(__name__)


class EventLogSource(Value, frozen=True, kw_only=True):
    """The session whose events these are."""

    newest_entry: Callable[[], str | None]
    is_stored: Callable[[], bool]
    """Whether it has a file by now; asked on a thread."""
    gave_up: Callable[[], None]
    """Called when the disk was given up and a cache stays on it that lacks what is sent from now on."""


class _Signals(Struct):
    work: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    persisted: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    over: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    is_closing: bool = False
    given_up: ReplayFile | None = None
    """A cache that is to be taken away."""


class _Queue(Struct):
    """Events on their way to the disk."""

    lines: list[NumberedEvent] = msgspec.field(default_factory=list[NumberedEvent])
    size: int = 0
    is_writing: bool = False
    early: list[NumberedEvent] = msgspec.field(default_factory=list[NumberedEvent])


class ReplayWriter:
    """Owns the cache of one session; `run` is its task."""

    def __init__(self, file: ReplayFile | None, *, seq: int, source: EventLogSource) -> None:
        """Begin after the event `seq`; without a file everything may be sent at once."""
        self.persisted_to = seq
        """Everything up to this number may be sent."""
        self._file = file
        self._source = source
        self._newest = seq
        self._reserved = seq
        self._entry: str | None = None
        self._queue = _Queue()
        self._signals = _Signals()

    @property
    def file(self) -> ReplayFile | None:
        """The cache, when it can be read."""
        return self._file if self._file is not None and self._file.is_there else None

    def put(self, seq: int, body: bytes | None) -> None:
        """Record an event; without a body it is a delta, of which only the number is used."""
        self._newest = seq
        if self._file is not None and body is not None:
            # The event itself does not count: one that is large is no sign of a slow disk.
            if self._queue.size > WAITING_BYTES:
                self._give_up(f"{self._queue.size} bytes wait for it")
                return
            self._queue.lines.append((seq, body))
            self._queue.size += len(body)
            self._signals.work.set()
        elif self._is_short():
            self._signals.work.set()
        self._advance()

    async def wait_persisted(self, seq: int) -> None:
        """Wait until everything up to a number may be sent; bounded by what a slow disk is given."""
        while self.persisted_to < seq:
            _ = await self._signals.persisted.wait()

    async def run(self) -> None:
        """Write what is put until `close`."""
        signals = self._signals
        try:
            while not signals.is_closing or self._queue.lines:
                _ = await signals.work.wait()
                if not signals.is_closing:
                    # Events often come in pairs; one more step of the loop costs less than one more write.
                    await asyncio.sleep(0)
                    signals.work.clear()
                await self._write()
                await self._discard()
        finally:
            signals.over.set()

    async def close(self) -> None:
        """Write the rest, and that the session ended well: its numbers go on where they are."""
        self._signals.is_closing = True
        self._signals.work.set()
        with anyio.move_on_after(CLOSE_S, shield=True):
            _ = await self._signals.over.wait()
            if (file := self.file) is not None and not self._queue.is_writing:
                mark = CacheMark(to=self._newest, entry=self._source.newest_entry())
                await anyio.to_thread.run_sync(partial(_finish, file, mark))

    async def _write(self) -> None:
        file, queue = self._file, self._queue
        if file is None or not (queue.lines or self._is_short()):
            return
        lines = [*queue.early, *queue.lines]
        queue.early, queue.lines, queue.size = [], [], 0
        mark = self._mark()
        queue.is_writing = True
        try:
            async with asyncio.timeout(SLOW_S):
                is_written = await run_abandonable(
                    _append, file, lines, mark, self._source.is_stored
                )
        except (OSError, TimeoutError) as error:
            self._give_up(str(error) or f"a write took longer than {SLOW_S} s")
            return
        if self._file is None:
            return  # given up meanwhile
        queue.is_writing = False
        if mark is not None:
            self._reserved = mark.to
        if is_written:
            self._entry = mark.entry if mark is not None else self._entry
        else:
            # Nothing was said yet: there is no session to come back to, but there soon may be.
            queue.early = lines[-EARLY_EVENTS:]
            if len(lines) > EARLY_EVENTS:
                file.begin_after(lines[-EARLY_EVENTS - 1][0])
        self._advance()

    def _mark(self) -> CacheMark | None:
        entry = self._source.newest_entry()
        if self._is_short():
            return CacheMark(to=self._newest + RESERVED, entry=entry)
        return None if entry == self._entry else CacheMark(to=self._reserved, entry=entry)

    def _is_short(self) -> bool:
        return self._file is not None and self._newest > self._reserved - RESERVED // 2

    def _advance(self) -> None:
        queue, kept = self._queue, self.persisted_to
        if self._file is None:
            self.persisted_to = self._newest
        elif queue.is_writing:
            return
        else:
            last = queue.lines[0][0] - 1 if queue.lines else self._newest
            self.persisted_to = max(kept, min(last, self._reserved))
        if self.persisted_to != kept:
            # Whoever waits is woken by it also where it is cleared at once.
            self._signals.persisted.set()
            self._signals.persisted.clear()

    def _give_up(self, why: str) -> None:
        """Continue without the disk: subscribers still get every event, a client that reconnects gets a snapshot."""
        _log.warning("the replay cache of a session is given up: %s", why)
        self._file, self._signals.given_up = None, self._file
        self._queue = _Queue()
        self._signals.work.set()
        self._advance()

    async def _discard(self) -> None:
        """Delete a cache that was given up: another process would take it for complete."""
        file, self._signals.given_up = self._signals.given_up, None
        if file is None:
            return
        try:
            with anyio.fail_after(SLOW_S):
                await anyio.to_thread.run_sync(file.discard, abandon_on_cancel=True)
        except (OSError, TimeoutError) as error:
            _log.warning("it cannot be taken away, so a new epoch begins: %s", error)
            self._source.gave_up()


def _append(
    file: ReplayFile,
    lines: list[NumberedEvent],
    mark: CacheMark | None,
    is_stored: Callable[[], bool],
) -> bool:
    if not file.is_there and not is_stored():
        return False
    file.append(lines, mark)
    return True


def _finish(file: ReplayFile, mark: CacheMark) -> None:
    try:
        file.append((), mark)
    except OSError as error:
        _log.warning("the replay cache %r could not be ended: %s", str(file.path), error)
    file.close()
