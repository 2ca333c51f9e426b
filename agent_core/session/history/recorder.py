"""Records messages and background work in the session's file."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, Generic, Literal, Protocol, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Struct

from agent_core.kernel import Clock, EntryId, new_entry_id
from agent_core.kernel.errors import SessionClosed, StorageError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.threads import uncancelled
from agent_core.messages import Message
from agent_core.session.history.entries import EntryFactory
from agent_core.session.redaction import long_texts, redacted
from agent_core.storage import SessionLog
from agent_core.storage.port import SessionAttachments
from agent_core.transcript import Transcript
from agent_core.transcript.context import LeafContext, context_entries
from agent_core.transcript.entries import AnyEntry, ColdEntry, CompactionEntry, WholeEntry

T = TypeVar("T")

log = logging.getLogger(__name__)


class _Outcome(Struct, Generic[T]):
    """Outcome of a step."""

    over: anyio.Event = msgspec.field(default_factory=anyio.Event)
    given: list[T] = msgspec.field(default_factory=list)
    failed: list[Exception] = msgspec.field(default_factory=list)


class Background:
    """Runner of short steps in the session's own task group.

    A request that is cancelled, or whose connection is lost, ends its task at once, whatever shields that task; a step
    that is half done then would leave the file and the memory inconsistent.
    """

    def __init__(self) -> None:
        self.group: TaskGroup | None = None
        """The session's; None: before it is open, when steps are taken in the caller's task."""
        self._own: set[asyncio.Task[object] | None] = set()
        """The tasks of the session in which steps are taken: of other steps, and of runs. No request ends them."""

    def start(self, work: Callable[[], Coroutine[object, None, object]]) -> None:
        """Start work in a task of the session that nobody waits for; nothing starts while the session is not open."""
        if self.group is not None:
            self.group.start_soon(work)

    def start_fenced(self, work: Callable[[], Awaitable[object]]) -> None:
        """Start work in a task of the session that nobody waits for; a failure is logged, and the session goes on."""
        if self.group is not None:
            self.group.start_soon(self._work, work, _Outcome[object]())

    @contextmanager
    def in_own_task(self) -> Generator[None]:
        """Run steps in the present task, which `start` started: it has hundreds of them, and no request ends it."""
        task = asyncio.current_task()
        self._own.add(task)
        try:
            yield
        finally:
            self._own.discard(task)

    async def shielded(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run a step to completion even if the caller is cancelled; the cancellation is then raised.

        A step inside another one runs in the task of the outer one, which nothing cancels, and a step of a run in the
        task of the run: only scopes of the session cancel it, and those a shield keeps away.

        Raises:
            Exception: Any exception of the step.
        """
        if self.group is None:
            return await uncancelled(step())
        if asyncio.current_task() in self._own:
            return await uncancelled(step())
        outcome = _Outcome[T]()
        self.group.start_soon(self._take, step, outcome)  # decision 0027
        with anyio.CancelScope(shield=True):
            await outcome.over.wait()
        if outcome.failed:
            raise outcome.failed[0]
        return outcome.given[0]

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something that may take long, and go on with it when the caller is cancelled; it ends with the session.

        Raises:
            Exception: Whatever the work raises, as long as the caller waits.
            SessionClosed: The session was closed before it was done.
        """
        if self.group is None:
            return await work()
        outcome = _Outcome[T]()
        self.group.start_soon(self._work, work, outcome)
        await outcome.over.wait()
        if outcome.failed:
            raise outcome.failed[0]
        if not outcome.given:
            message = "the session was closed before this was done"
            raise SessionClosed(message)
        return outcome.given[0]

    @staticmethod
    async def _work(work: Callable[[], Awaitable[T]], outcome: _Outcome[T]) -> None:
        try:
            outcome.given.append(await work())
        except Exception as error:  # noqa: BLE001 - raised again where somebody waits; the session goes on
            log.warning("something that was begun in a session failed: %r", error)
            outcome.failed.append(error)
        finally:
            outcome.over.set()

    async def _take(self, step: Callable[[], Awaitable[T]], outcome: _Outcome[T]) -> None:
        try:
            with self.in_own_task(), anyio.CancelScope(shield=True):
                outcome.given.append(await step())
        except Exception as error:  # noqa: BLE001 - raised again in the task of whoever asked
            outcome.failed.append(error)
        finally:
            outcome.over.set()


Durability = Literal["entry", "run"]
"""When what was written is made to survive a power cut: at once, or at the end of a run and where something waits."""

TRY_AGAIN_S = 5.0
"""How long after a failure the disk is tried again when nothing new is to be written."""


class RecorderListener(Protocol):
    """Hears of the disk."""

    def failed(self, error: StorageError, /) -> None:
        """Something could not be written or made to last."""
        ...

    def works_again(self, entries: int, /) -> None:
        """So many entries that were only in memory are in the file now."""
        ...


class _Backlog(Struct):
    """Entries that could not be written to the disk."""

    entries: list[AnyEntry] = msgspec.field(default_factory=list)
    failed: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """Set while entries wait for the disk."""


class Recorder:
    """Appends entries, one batch after another; a batch that has begun is not cancelled."""

    def __init__(
        self,
        log: SessionLog,
        transcript: Transcript,
        *,
        clock: Clock,
        news: RecorderListener,
        durability: Durability = "run",
        redactor: Redactor | None = None,
    ) -> None:
        self.background = Background()
        """In which everything is written, so that nobody who leaves takes half of it along."""
        self._redactor = redactor or Redactor()
        self._log = log
        self.header: Final = log.header
        """The first line of the session's file; a session in memory has it as well."""
        self.transcript: Final = transcript
        """All entries of all branches, for reading; those outside of the present context may lack their bodies."""
        self._context = LeafContext(transcript)
        self._clock = clock
        self._news = news
        self._durability = durability
        self._backlog = _Backlog()
        self._closed = False
        self._lock = anyio.Lock(fast_acquire=True)

    @property
    def unsaved(self) -> int:
        """How many entries the disk does not hold yet."""
        return len(self._backlog.entries)

    @property
    def location(self) -> str | None:
        """The session's file; None in memory."""
        return None if self._log.location is None else str(self._log.location)

    @property
    def attachments(self) -> SessionAttachments | None:
        """Where images are stored; None: entries hold them."""
        return self._log.attachments

    def context(self) -> tuple[Message, ...]:
        """Return the messages of the current branch as the model should see them."""
        return self._context.messages()

    def path(self) -> tuple[AnyEntry, ...]:
        """Return the entries of the current branch."""
        return self.transcript.path()

    async def accept(self, *drafts: EntryFactory) -> EntryId:
        """Write something that is about to be acknowledged; gives the id of its first entry.

        Raises:
            StorageError: It is not in the file, and nothing of it is kept.
        """
        return (await self.background.shielded(lambda: self._append(drafts, keep=False)))[0].id

    async def accept_if(self, holds: Callable[[], bool], *drafts: EntryFactory) -> EntryId | None:
        """Write something if a condition holds when everything before it is written; None: it did not hold.

        Raises:
            StorageError: It is not in the file, and nothing of it is kept.
        """
        step = partial(self._append, drafts, keep=False, holds=holds)
        entries = await self.background.shielded(step)
        return entries[0].id if entries else None

    async def keep(self, *drafts: EntryFactory) -> EntryId:
        """Write something that has happened; gives the id of its first entry.

        When the disk fails that is told, the entries stay in memory, and they are written with the next ones.
        """
        return (await self.background.shielded(lambda: self._append(drafts, keep=True)))[0].id

    async def load(self, entries: Sequence[AnyEntry]) -> tuple[WholeEntry, ...]:
        """Return entries with their bodies; those that are in the file alone are read back.

        Raises:
            StorageError: The file cannot be read, or was changed by another program.
        """
        cold = [entry for entry in entries if isinstance(entry, ColdEntry)]
        loaded = {entry.id: entry for entry in await self._log.load(cold)} if cold else {}
        return tuple(
            loaded[entry.id] if isinstance(entry, ColdEntry) else entry for entry in entries
        )

    async def move(self, leaf: EntryId | None) -> None:
        """Go to another entry, so that the next one follows that; None begins anew.

        Bodies that the context there needs are read back, and those that it does not need are let go.

        Raises:
            ValueError: There is no such entry.
            StorageError: A body cannot be read back; the leaf is where it was.
        """
        async with self._lock:
            path = () if leaf is None else self.transcript.path(leaf)
            needed = [one for one in context_entries(path) if isinstance(one, ColdEntry)]
            self.transcript.swap(await self.load(needed))
            self.transcript.move(leaf)
            self.cool()

    def cool(self) -> None:
        """Release the bodies of entries outside the context that the file holds; of none while writes are failing."""
        if self._backlog.entries:
            return
        needed = {entry.id for entry in context_entries(self.transcript.path())}
        idle = [
            entry
            for entry in self.transcript.entries
            if entry.id not in needed and not isinstance(entry, ColdEntry)
        ]
        cooled = zip(idle, self._log.cool(idle), strict=True)
        self.transcript.swap(after for before, after in cooled if after is not before)
        # It would hold the bodies until the next request.
        self._context = LeafContext(self.transcript)

    async def sync(self) -> None:
        """Make everything so far survive a power cut; a failure is told."""
        try:
            await self._log.sync()
        except StorageError as error:
            self._news.failed(error)

    async def keep_trying(self) -> None:
        """Write what the disk refused, every few seconds while it refuses; runs as long as the session."""
        while not self._closed:
            await self._backlog.failed.wait()
            await self._clock.sleep(TRY_AGAIN_S)
            async with self._lock:
                if self._backlog.entries and not self._closed:
                    await uncancelled(self._try_again())

    async def close(self) -> None:
        """Try once more to write what is unsaved, then let the file go."""
        if self._backlog.entries:
            _ = await uncancelled(self._append((), keep=True))
        async with self._lock:
            self._closed = True
            await self._log.close()

    async def _append(
        self,
        drafts: Sequence[EntryFactory],
        *,
        keep: bool,
        holds: Callable[[], bool] = lambda: True,
    ) -> tuple[AnyEntry, ...]:
        async with self._lock:
            if not holds():
                return ()
            entries = await self._clean(self._number(drafts))
            try:
                await self._write(entries)
            except StorageError as error:
                if not keep:
                    raise
                self._backlog.entries.extend(entries)
                self._backlog.failed.set()
                self._news.failed(error)
            for entry in entries:
                self.transcript.add(entry)
            if any(isinstance(entry, CompactionEntry) for entry in entries):
                self.cool()
            return entries

    async def _try_again(self) -> None:
        try:
            await self._write(())
        except StorageError:
            return  # told when it began

    async def _write(self, entries: Sequence[AnyEntry]) -> None:
        waited = len(self._backlog.entries)
        await self._log.append((*self._backlog.entries, *entries))
        self._backlog.entries.clear()
        if waited:
            self._backlog.failed = anyio.Event()
            self._news.works_again(waited)
        if self._durability == "entry":
            await self.sync()

    async def _clean(self, entries: tuple[AnyEntry, ...]) -> tuple[AnyEntry, ...]:
        """Remove secrets before anything is written or stored; the model's context is built from the result too."""
        await self._redactor.prepare(long_texts(entries))
        return redacted(entries, self._redactor)

    def _number(self, drafts: Sequence[EntryFactory]) -> tuple[AnyEntry, ...]:
        at_ms = self._clock.now_ms()
        parent = self.transcript.leaf
        entries: list[AnyEntry] = []
        for draft in drafts:
            entry = draft(new_entry_id(self.transcript, at_ms=at_ms), parent, at_ms)
            entries.append(entry)
            parent = entry.id
        return tuple(entries)
