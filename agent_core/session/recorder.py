"""The only writer of the transcript: in the file first, then in memory, then told."""

from collections.abc import Callable, Sequence

import anyio

from agent_core.kernel import Clock, EntryId, new_entry_id
from agent_core.kernel.errors import StorageError
from agent_core.kernel.shield import uncancelled
from agent_core.messages import Message
from agent_core.session.drafts import Draft
from agent_core.storage import SessionLog
from agent_core.transcript import Transcript
from agent_core.transcript.context import build_context
from agent_core.transcript.entries import AnyEntry


class Recorder:
    """Appends entries, one batch after another; a batch that has begun is not cancelled."""

    def __init__(
        self,
        log: SessionLog,
        transcript: Transcript,
        *,
        clock: Clock,
        trouble: Callable[[StorageError], None],
    ) -> None:
        self._log = log
        self._transcript = transcript
        self._clock = clock
        self._trouble = trouble
        self._unsaved: list[AnyEntry] = []
        self._lock = anyio.Lock()

    @property
    def unsaved(self) -> int:
        """How many entries the disk does not hold yet."""
        return len(self._unsaved)

    @property
    def location(self) -> str | None:
        """The session's file; None in memory."""
        return None if self._log.location is None else str(self._log.location)

    def context(self) -> tuple[Message, ...]:
        """Give the messages of the current branch as the model should see them."""
        return build_context(self._transcript.path()).messages

    def path(self) -> tuple[AnyEntry, ...]:
        """Give the entries of the current branch."""
        return self._transcript.path()

    async def accept(self, *drafts: Draft) -> EntryId:
        """Write something that is about to be acknowledged; gives the id of its first entry.

        Raises:
            StorageError: It is not in the file, and nothing of it is kept.
        """
        return (await uncancelled(self._append(drafts, keep=False)))[0].id

    async def keep(self, *drafts: Draft) -> EntryId:
        """Write something that has happened; gives the id of its first entry.

        When the disk fails that is told, the entries stay in memory, and they are written with the next ones.
        """
        return (await uncancelled(self._append(drafts, keep=True)))[0].id

    async def sync(self) -> None:
        """Make everything so far survive a power cut; a failure is told."""
        try:
            await self._log.sync()
        except StorageError as error:
            self._trouble(error)

    async def close(self) -> None:
        """Try once more to write what is unsaved, then let the file go."""
        if self._unsaved:
            _ = await uncancelled(self._append((), keep=True))
        await self._log.close()

    async def _append(self, drafts: Sequence[Draft], *, keep: bool) -> tuple[AnyEntry, ...]:
        async with self._lock:
            entries = self._number(drafts)
            try:
                await self._log.append((*self._unsaved, *entries))
                self._unsaved.clear()
            except StorageError as error:
                if not keep:
                    raise
                self._unsaved.extend(entries)
                self._trouble(error)
            for entry in entries:
                self._transcript.add(entry)
            return entries

    def _number(self, drafts: Sequence[Draft]) -> tuple[AnyEntry, ...]:
        at_ms = self._clock.now_ms()
        parent = self._transcript.leaf
        entries: list[AnyEntry] = []
        for draft in drafts:
            entry = draft(new_entry_id(self._transcript, at_ms=at_ms), parent, at_ms)
            entries.append(entry)
            parent = entry.id
        return tuple(entries)
