"""The chat file of one session: it gets what the session tells, whatever its user does to it meanwhile."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct

from agent_core.events import Reader
from agent_core.kernel import MessageId
from agent_core.kernel.errors import (
    EditDeferred,
    EditRefused,
    EditUnverified,
    StaleText,
    WorkspaceError,
)
from agent_core.transcript import AnyEntry
from tiller_server.lsp.plain.chat.event_renderer import URGENT, Told
from tiller_server.lsp.plain.chat.format import Piece, grown, mark_of, new_file, tail_of
from tiller_server.lsp.plain.chat.pieces import from_log, permission_pieces, question_pieces
from tiller_server.lsp.plain.chat.projection import Page
from tiller_server.lsp.plain.chat.scratch_file import Look, Place, Reopened
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.sessions.open_session import Hosted, show

EVERY_S: Final = 1.0
"""How often an answer grows that is being given."""
SLOWEST_S: Final = 30.0
"""How long it is waited before a file is tried again that could not be written."""
TRIES: Final = 4
"""How often a file is read anew that its user changes all the time."""

DEFERRED: Final = (
    "it has unsaved text, and this editor takes no edits. Save it, and the answer comes"
)

_log = logging.getLogger(__name__)


class _Bells(Struct, kw_only=True):
    """Events that the writer waits for."""

    news: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    urgent: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class _Known(Struct, kw_only=True):
    """Knowledge about the file since the last write."""

    tail: str = ""
    """How our own words in it ended."""
    document: tuple[int, int] | None = None
    """Which document had it."""
    doubt: tuple[str, int] | None = None
    """Mark of the file and number of pieces that hold if an edit of unknown outcome has landed; None: no such edit."""
    trouble: str = ""
    """Trouble that was last shown to the user."""
    wait_s: float = EVERY_S
    is_found: bool = False
    """It was compared with what was said."""


class ChatFile:
    """The one writer of the file, for all editors of the session: nothing stands in it twice."""

    def __init__(
        self, hosted: Hosted, entries: Sequence[AnyEntry], *, place: Place, spare: Place
    ) -> None:
        """Begin with what was said so far; `run` follows what comes.

        Args:
            hosted: The session.
            entries: Its log up to this moment, whole.
            place: Where the file lies.
            spare: Where it lies when it can be written there not.
        """
        self.hosted: Final = hosted
        self.place = place
        self._spare = spare
        self._fronts: list[Front] = []
        self._reader: Reader = hosted.session.subscribe()
        self._told = Told(entry.id for entry in entries)
        self._page = _page(hosted, entries)
        self._known = _Known()
        self._bells = _Bells()
        self._turns = (anyio.Lock(), anyio.Lock())

    @property
    def fronts(self) -> Sequence[Front]:
        """The editors that use it."""
        return tuple(self._fronts)

    def join(self, front: Front) -> None:
        """Register an editor: if it has the file open, its text counts as the file."""
        if front not in self._fronts:
            self._fronts.append(front)
            self.place.files.attach(front.editor)
            self._spare.files.attach(front.editor)
        self.ring()

    def leave(self, front: Front) -> None:
        """Remove an editor; pieces that it did not save are written again when the next editor joins."""
        if front in self._fronts:
            self._fronts.remove(front)
            self.place.files.detach(front.editor)
            self._spare.files.detach(front.editor)

    def ring(self) -> None:
        """Have the file looked at soon."""
        self._known.wait_s = EVERY_S
        self._bells.news.set()
        self._bells.urgent.set()

    def unsent(self, words: str) -> str:
        """Return a draft without the text that was sent from there and is not answered yet."""
        return self._page.unsent(words)

    @asynccontextmanager
    async def sending(self, message: MessageId, turn: Piece) -> AsyncGenerator[None]:
        """Add a turn of the user before all its results, if the block sends it; nothing if the block raises."""
        async with self._turns[0]:
            self._told.expect(message)
            yield
            self._page.add(turn)
        self.ring()

    def note(self, *pieces: Piece) -> None:
        """Show something that the session does not tell."""
        self._page.add(*pieces)
        self.ring()

    async def run(self) -> None:
        """Follow the session until it is closed."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._keep_writing)
                async for stamped in self._reader:
                    async with self._turns[0]:
                        self._page.add(*self._told.see(stamped.event))
                    self._bells.news.set()
                    if isinstance(stamped.event, URGENT):
                        self._bells.urgent.set()
                group.cancel_scope.cancel()
            await self.flush()
        finally:
            self._reader.close()

    async def flush(self) -> None:
        """Write what is not in the file; with nobody to see it, it can wait."""
        if not self._fronts:
            return
        async with self._turns[1]:
            for _ in range(TRIES):
                try:
                    if await self._write():
                        self._known.wait_s = EVERY_S
                        return
                except Reopened:
                    continue
                except StaleText:
                    self._known.doubt = None
                except WorkspaceError as error:
                    if not self._moved_for(error):
                        return

    async def _keep_writing(self) -> None:
        bells = self._bells
        while True:
            await bells.news.wait()
            try:
                async with asyncio.timeout(self._known.wait_s):
                    await bells.urgent.wait()
            except TimeoutError:
                pass
            bells.news.clear()
            bells.urgent.clear()
            await self.flush()
            if self._page.is_behind and self._fronts:
                bells.news.set()

    async def _write(self) -> bool:
        """Write once; gives no when the file must be looked at again.

        Raises:
            WorkspaceError: It cannot be written, or its user was faster.
        """
        known, page = self._known, self._page
        if not known.is_found:
            await self.place.find()
        seen = await self.place.look()
        base = seen.base
        is_new = base is None or not (known.is_found or base.text.strip())
        await self._compare(seen)
        pieces = page.waiting()
        if not (pieces or is_new):
            return True
        text = base.text if base is not None and base.text.strip() else new_file()
        target, tail, mark = await to_thread.run_sync(_grown, text, pieces, known.tail)
        if not self._fronts:
            # An editor that starts just now reads the disk, and would show a file that is old already.
            return True
        known.doubt = (mark, len(pieces))
        written = await self.place.write(target, seen=seen)
        known.doubt = None
        page.put(len(pieces), mark)
        if written.saved:
            page.keep()
        known.tail = tail
        return not page.is_behind

    async def _compare(self, seen: Look) -> None:
        """Find out what of ours is in the file."""
        known, page, base = self._known, self._page, seen.base
        if base is None or (not known.is_found and not base.text.strip()):
            page.start_anew()
            known.tail = ""
        elif not known.is_found:
            await to_thread.run_sync(page.find, base.text)
            known.tail = ""
        else:
            tail, mark = await to_thread.run_sync(_ends, base.text)
            if known.doubt is not None and known.doubt[0] == mark:
                page.put(known.doubt[1], mark)
                known.tail = tail
            is_other = seen.document != known.document and mark != page.mark
            if is_other and (page.is_unsaved or page.knows(mark)):
                known.tail = tail if page.lose(mark) else ""
            elif not base.dirty:
                page.keep()
        known.doubt = None
        known.is_found = True
        known.document = seen.document

    def _moved_for(self, error: WorkspaceError) -> bool:
        """Record that the file cannot be written; return whether the chat has moved to the spare place."""
        known = self._known
        is_closed = known.document is None and not isinstance(error, EditRefused | EditUnverified)
        if is_closed and self.place is not self._spare:
            old, self.place = self.place, self._spare
            self._page.start_anew()
            self._known = _Known()
            self._tell(f"{old.path} cannot be written ({error}). The chat is in {self.place.path}")
            return True
        _log.info("The chat file cannot be written: %s", error)
        known.wait_s = min(max(known.wait_s * 2, 2.0), SLOWEST_S)
        why = DEFERRED if isinstance(error, EditDeferred) else str(error)
        if known.trouble != why:
            known.trouble = why
            self._tell(f"the chat file cannot be written: {why}")
        return False

    def _tell(self, text: str) -> None:
        for front in self._fronts:
            show(front, f"Tiller: {text}")


def _grown(text: str, pieces: Sequence[Piece], tail: str) -> tuple[str, str, str]:
    target = grown(text, pieces, tail=tail)
    return target, *_ends(target)


def _ends(text: str) -> tuple[str, str]:
    return tail_of(text), mark_of(text)


def _page(hosted: Hosted, entries: Sequence[AnyEntry]) -> Page:
    page = Page(tuple(from_log(entries)))
    session = hosted.session
    for asked in session.permissions.pending:
        page.add(*permission_pieces(asked))
    for question in session.questions.pending:
        page.add(*question_pieces(question))
    return page
