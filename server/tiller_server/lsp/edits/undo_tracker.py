"""Follows the edits that landed in open documents: whether their user undoes them, does them again, or saves them."""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct

from agent_core.kernel.values import Value
from agent_core.workspace.files.proxy import EditOrigin
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.editors.editor import Editor
from tiller_server.lsp.edits.undo_matches import (
    KeptText,
    TrackedEdit,
    drop_texts_over_limit,
    present_edits,
    toggled_edits,
)

QUIET_S: Final = 0.3
"""Without typing, before a text that is not exactly a former one is looked through."""
MOST_EDITS: Final = 64
"""So many edits of one document are followed."""

TrackedEditStatus: TypeAlias = Literal["undone", "redone", "saved"]


class EditOutcome(Value, frozen=True, kw_only=True):
    """Report that a user undid, redid or saved an edit of ours."""

    fate: TrackedEditStatus
    path: Path
    origin: EditOrigin | None
    now: Document


class _Seen(Struct, kw_only=True):
    """How far a document was looked at."""

    revision: int
    """Revision that was told last; told again, it was saved."""
    compared: int = -1
    """Revision that was compared with former texts."""
    was_saved: bool = False
    is_sorted: bool = True
    """Whether it is known which edits the newest one took back."""


class _Followed(Struct, kw_only=True):
    """One open document with edits of ours."""

    editor: Editor
    uri: str
    epoch: int
    path: Path
    seen: _Seen
    edits: list[TrackedEdit] = msgspec.field(default_factory=list[TrackedEdit])
    watching: ExitStack = msgspec.field(default_factory=ExitStack)
    held: int = 0
    """Edits of ours that are under way."""


async def _ignore_outcome(outcome: EditOutcome) -> None:
    _ = outcome


class UndoTracker:
    """The edits of one session in open documents. A closed document is forgotten, and so is its undo history."""

    def __init__(self, is_on_disk: Callable[[Path, str], Awaitable[bool]]) -> None:
        """Begin with none.

        Args:
            is_on_disk: Tells whether a file has a text.
        """
        self.on_outcome: Callable[[EditOutcome], Awaitable[None]] = _ignore_outcome
        """Called with what is found, by `run`."""
        self._is_on_disk = is_on_disk
        self._followed: dict[tuple[int, str], _Followed] = {}
        self._news = anyio.Event()
        self._over = anyio.Event()
        self._turn = anyio.Lock()

    async def run(self) -> None:
        """Look at every change of a followed document, until `close`."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._look_at_all)
            await self._over.wait()
            group.cancel_scope.cancel()

    async def refresh(self) -> None:
        """Look at once, so that what follows knows of it; those who call wait in their order."""
        if not self._followed:
            return
        async with self._turn:
            for one in tuple(self._followed.values()):
                await self._look(one)

    def close(self) -> None:
        """Follow nothing any more; `run` ends."""
        self._over.set()
        for one in tuple(self._followed.values()):
            self._forget(one)

    @contextmanager
    def ours(self, editor: Editor, document: Document) -> Generator[None]:
        """Report that what happens to a document during the block is our doing."""
        key = (id(editor), document.uri)
        followed = self._followed.get(key)
        if followed is not None:
            followed.held += 1
        try:
            yield
        finally:
            if followed is not None:
                followed.held -= 1
                self._news.set()

    def add(
        self,
        path: Path,
        *,
        editor: Editor,
        before: Document,
        now: Document,
        origin: EditOrigin | None,
        saved: bool,
    ) -> None:
        """Record a verified edit. Does not block: `run` examines its effect on earlier edits."""
        followed = self._follow(path, editor, now)
        if followed is None:
            return
        edit = TrackedEdit(
            before=KeptText.of(before.text),
            after=KeptText.of(now.text),
            origin=origin,
            saved=saved,
        )
        # What was undone cannot be done again once there is something newer.
        left = [one for one in followed.edits if not one.is_undone]
        followed.edits = [*left, edit][-MOST_EDITS:]
        followed.seen.is_sorted = False
        self._news.set()

    def _follow(self, path: Path, editor: Editor, document: Document) -> _Followed | None:
        key = (id(editor), document.uri)
        followed = self._followed.get(key)
        if followed is not None and followed.epoch != document.epoch:
            self._forget(followed)
            followed = None
        if editor.mirror.get(document.uri) is None:
            return None
        if followed is None:
            followed = _Followed(
                editor=editor,
                uri=document.uri,
                epoch=document.epoch,
                path=path,
                seen=_Seen(revision=document.revision),
            )
            self._followed[key] = followed
            one = followed
            _ = followed.watching.enter_context(
                editor.mirror.watch(document.uri, lambda state: self._see(one, state))
            )
        return followed

    def _see(self, one: _Followed, state: Document | None) -> None:
        if state is None or state.epoch != one.epoch:
            self._forget(one)
            return
        seen = one.seen
        seen.was_saved = seen.was_saved or state.revision == seen.revision
        seen.revision = state.revision
        self._news.set()

    def _forget(self, one: _Followed) -> None:
        one.watching.close()
        if self._followed.get((id(one.editor), one.uri)) is one:
            del self._followed[id(one.editor), one.uri]

    # ------------------------------------------------------------------ looking

    async def _look_at_all(self) -> None:
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            await self.refresh()
            all_edits = [edit for one in self._followed.values() for edit in one.edits]
            await to_thread.run_sync(drop_texts_over_limit, all_edits)
            with anyio.move_on_after(QUIET_S):
                await self._news.wait()
                continue
            # Whoever looks before a prompt waits until all that was found here is told.
            async with self._turn:
                for one in tuple(self._followed.values()):
                    await self._look_through(one)

    async def _look(self, one: _Followed) -> None:
        """Compare the text with those that were there before and after the edits; see whether it was saved."""
        now = one.editor.mirror.get(one.uri)
        if one.held or now is None:
            return
        if one.seen.compared != now.revision:
            one.seen.compared = now.revision
            edits = tuple(one.edits)
            found = await to_thread.run_sync(present_edits, edits, now.text)
            await self._take(one, edits, found, now)
        if one.seen.was_saved:
            one.seen.was_saved = False
            await self._take_saved(one, now)

    async def _look_through(self, one: _Followed) -> None:
        """Find edits whose every change is gone, or is there again, among other changes."""
        now = one.editor.mirror.get(one.uri)
        if one.held or now is None or not one.edits:
            return
        edits, text, is_sorted = tuple(one.edits), now.text, one.seen.is_sorted
        found = await to_thread.run_sync(_toggled, edits, text, is_sorted)
        if edits == tuple(one.edits):
            one.seen.is_sorted = True
        await self._take(one, edits, found, now)

    async def _take(
        self,
        one: _Followed,
        edits: Sequence[TrackedEdit],
        found: Mapping[int, bool],
        now: Document,
    ) -> None:
        """Note which edits stand, and tell those of which that is new."""
        if one.held or edits != tuple(one.edits):
            one.seen.compared = -1  # an edit of ours came in between: what was found is out of date
            return
        news = [edits[index] for index, there in found.items() if edits[index].is_undone == there]
        for edit in news:
            edit.is_undone = not edit.is_undone
        # In the order of the undo stack: the newest edit is undone first and done again last, so that what is told last
        # is true of the text.
        undone = [edit for edit in reversed(news) if edit.is_undone]
        for edit in (*undone, *(edit for edit in news if not edit.is_undone)):
            fate: TrackedEditStatus = "undone" if edit.is_undone else "redone"
            await self._report(fate, one, edit, now)

    async def _take_saved(self, one: _Followed, now: Document) -> None:
        waiting = [edit for edit in one.edits if not edit.saved]
        if not waiting or not await self._is_on_disk(one.path, now.text):
            return
        for edit in waiting:
            edit.saved = True
        for edit in waiting:
            if not edit.is_undone:
                await self._report("saved", one, edit, now)

    async def _report(
        self, fate: TrackedEditStatus, one: _Followed, edit: TrackedEdit, now: Document
    ) -> None:
        await self.on_outcome(
            EditOutcome(
                fate=fate,
                path=one.path,
                origin=edit.origin,
                now=now,
            )
        )


def _toggled(edits: Sequence[TrackedEdit], text: str, is_sorted: bool) -> Mapping[int, bool]:  # noqa: FBT001 - called by a thread
    newest = edits[-1]
    if not is_sorted:
        _sort(edits[:-1], newest.after.text)
    if newest.after.is_text(text):
        return {}
    found = toggled_edits(edits, text)
    return {index: one for index, one in found.items() if not edits[index].is_ours_to_take}


def _sort(edits: Sequence[TrackedEdit], text: str | None) -> None:
    """Mark the edits that are gone from a text of our own making."""
    gone = range(len(edits)) if text is None else toggled_edits(edits, text)
    for index in gone:
        edits[index].is_ours_to_take = True
