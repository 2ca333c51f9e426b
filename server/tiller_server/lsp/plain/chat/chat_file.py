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

from agent_core.events import EventSubscription
from agent_core.kernel import MessageId
from agent_core.kernel.errors import (
    EditDeferred,
    EditRefused,
    EditUnverified,
    StaleText,
    WorkspaceError,
)
from agent_core.transcript import AnyEntry
from tiller_server.lsp.overlay.scratch_file import Reopened, ScratchFile, ScratchFileState
from tiller_server.lsp.plain.chat.event_renderer import URGENT, ChatEventRenderer
from tiller_server.lsp.plain.chat.format import ChatPiece, grown, mark_of, new_file, tail_of
from tiller_server.lsp.plain.chat.pieces import from_log, permission_pieces, question_pieces
from tiller_server.lsp.plain.chat.projection import ChatProjection
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession, show_error_message

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


class _FileState(Struct, kw_only=True):
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
        self,
        open_session: OpenSession,
        entries: Sequence[AnyEntry],
        *,
        place: ScratchFile,
        spare: ScratchFile,
    ) -> None:
        """Begin with what was said so far; `run` follows what comes.

        Args:
            open_session: The session.
            entries: Its log up to this moment, whole.
            place: Where the file lies.
            spare: Where it lies when it can be written there not.
        """
        self.open_session: Final = open_session
        self.place = place
        self._spare = spare
        self._clients: list[ConnectedClient] = []
        self._reader: EventSubscription = open_session.session.subscribe()
        self._renderer = ChatEventRenderer(entry.id for entry in entries)
        self._page = _page(open_session, entries)
        self._state = _FileState()
        self._bells = _Bells()
        self._turns = (anyio.Lock(), anyio.Lock())

    @property
    def clients(self) -> Sequence[ConnectedClient]:
        """The editors that use it."""
        return tuple(self._clients)

    def join(self, client: ConnectedClient) -> None:
        """Register an editor: if it has the file open, its text counts as the file."""
        if client not in self._clients:
            self._clients.append(client)
            self.place.files.attach(client.editor)
            self._spare.files.attach(client.editor)
        self.ring()

    def leave(self, client: ConnectedClient) -> None:
        """Remove an editor; pieces that it did not save are written again when the next editor joins."""
        if client in self._clients:
            self._clients.remove(client)
            self.place.files.detach(client.editor)
            self._spare.files.detach(client.editor)

    def ring(self) -> None:
        """Have the file looked at soon."""
        self._state.wait_s = EVERY_S
        self._bells.news.set()
        self._bells.urgent.set()

    def unsent(self, draft: str) -> str:
        """Return a draft without the text that was sent from there and is not answered yet."""
        return self._page.unsent(draft)

    @asynccontextmanager
    async def sending(self, message: MessageId, turn: ChatPiece) -> AsyncGenerator[None]:
        """Add a turn of the user before all its results, if the block sends it; nothing if the block raises."""
        async with self._turns[0]:
            self._renderer.expect(message)
            yield
            self._page.add(turn)
        self.ring()

    def note(self, *pieces: ChatPiece) -> None:
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
                        self._page.add(*self._renderer.render(stamped.event))
                    self._bells.news.set()
                    if isinstance(stamped.event, URGENT):
                        self._bells.urgent.set()
                group.cancel_scope.cancel()
            await self.flush()
        finally:
            self._reader.close()

    async def flush(self) -> None:
        """Write what is not in the file; with nobody to see it, it can wait."""
        if not self._clients:
            return
        async with self._turns[1]:
            for _ in range(TRIES):
                try:
                    if await self._write():
                        self._state.wait_s = EVERY_S
                        return
                except Reopened:
                    continue
                except StaleText:
                    self._state.doubt = None
                except WorkspaceError as error:
                    if not self._moved_for(error):
                        return

    async def _keep_writing(self) -> None:
        bells = self._bells
        while True:
            await bells.news.wait()
            try:
                async with asyncio.timeout(self._state.wait_s):
                    await bells.urgent.wait()
            except TimeoutError:
                pass
            bells.news.clear()
            bells.urgent.clear()
            await self.flush()
            if self._page.is_behind and self._clients:
                bells.news.set()

    async def _write(self) -> bool:
        """Write once; gives no when the file must be looked at again.

        Raises:
            WorkspaceError: It cannot be written, or its user was faster.
        """
        state, page = self._state, self._page
        if not state.is_found:
            await self.place.resolve()
        seen = await self.place.read()
        base = seen.base
        is_new = base is None or not (state.is_found or base.text.strip())
        await self._compare(seen)
        pieces = page.waiting()
        if not (pieces or is_new):
            return True
        text = base.text if base is not None and base.text.strip() else new_file()
        target, tail, mark = await to_thread.run_sync(_grown, text, pieces, state.tail)
        if not self._clients:
            # An editor that starts just now reads the disk, and would show a file that is old already.
            return True
        state.doubt = (mark, len(pieces))
        written = await self.place.write(target, seen=seen)
        state.doubt = None
        page.put(len(pieces), mark)
        if written.saved:
            page.keep()
        state.tail = tail
        return not page.is_behind

    async def _compare(self, seen: ScratchFileState) -> None:
        """Find out what of ours is in the file."""
        state, page, base = self._state, self._page, seen.base
        if base is None or (not state.is_found and not base.text.strip()):
            page.start_anew()
            state.tail = ""
        elif not state.is_found:
            await to_thread.run_sync(page.find, base.text)
            state.tail = ""
        else:
            tail, mark = await to_thread.run_sync(_ends, base.text)
            if state.doubt is not None and state.doubt[0] == mark:
                page.put(state.doubt[1], mark)
                state.tail = tail
            is_other = seen.document != state.document and mark != page.mark
            if is_other and (page.is_unsaved or page.knows(mark)):
                state.tail = tail if page.lose(mark) else ""
            elif not base.dirty:
                page.keep()
        state.doubt = None
        state.is_found = True
        state.document = seen.document

    def _moved_for(self, error: WorkspaceError) -> bool:
        """Record that the file cannot be written; return whether the chat has moved to the spare place."""
        state = self._state
        is_closed = state.document is None and not isinstance(error, EditRefused | EditUnverified)
        if is_closed and self.place is not self._spare:
            old, self.place = self.place, self._spare
            self._page.start_anew()
            self._state = _FileState()
            self._show_message(
                f"{old.path} cannot be written ({error}). The chat is in {self.place.path}"
            )
            return True
        _log.info("The chat file cannot be written: %s", error)
        state.wait_s = min(max(state.wait_s * 2, 2.0), SLOWEST_S)
        why = DEFERRED if isinstance(error, EditDeferred) else str(error)
        if state.trouble != why:
            state.trouble = why
            self._show_message(f"the chat file cannot be written: {why}")
        return False

    def _show_message(self, text: str) -> None:
        for client in self._clients:
            show_error_message(client, f"Tiller: {text}")


def _grown(text: str, pieces: Sequence[ChatPiece], tail: str) -> tuple[str, str, str]:
    target = grown(text, pieces, tail=tail)
    return target, *_ends(target)


def _ends(text: str) -> tuple[str, str]:
    return tail_of(text), mark_of(text)


def _page(open_session: OpenSession, entries: Sequence[AnyEntry]) -> ChatProjection:
    page = ChatProjection(tuple(from_log(entries)))
    session = open_session.session
    for asked in session.permissions.pending:
        page.add(*permission_pieces(asked))
    for question in session.questions.pending:
        page.add(*question_pieces(question))
    return page
