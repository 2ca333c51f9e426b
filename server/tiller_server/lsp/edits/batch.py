"""One edit of several documents: each write comes with its part, and when all have come the editor is asked once."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

import anyio
import msgspec

from agent_core.kernel.values import Value
from tiller_server.lsp.editors.edit_verification import ApplyResponse
from tiller_server.lsp.editors.editor import CHANGED, Editor
from tiller_server.lsp.editors.requests import DocumentEdit


class _Part(Value, frozen=True, kw_only=True, eq=False):
    """Part of one write in the common edit."""

    edit: DocumentEdit
    over: anyio.Event = msgspec.field(default_factory=anyio.Event)
    answers: list[ApplyResponse] = msgspec.field(default_factory=list[ApplyResponse])
    """One at most; none when it is over: it is to be asked for alone."""

    def end(self, answer: ApplyResponse | None) -> None:
        if answer is not None:
            self.answers.append(answer)
        self.over.set()


class EditBatch:
    """Common edit of several writes, to different documents of one editor.

    A document that changes while the others come stays out, and so does one whose change made the editor refuse all
    of them; the rest of the edit is requested again. A write that was left out continues alone, as if there were no
    others.
    """

    def __init__(self, editor: Editor, *, members: int) -> None:
        """Begin.

        Args:
            editor: One whose abilities allow such edits. The caller sees to it that one at a time is under way there:
                two that wait for one another's documents would do so for ever.
            members: How many seats will be taken, each once.
        """
        self.editor: Final = editor
        self._awaited = members
        self._joined = members
        self._parts: list[_Part] = []
        self._complete = anyio.Event()
        self._scope = anyio.CancelScope(shield=True)
        self._turn = anyio.Lock()

    async def run(self) -> None:
        """Request all parts in one edit; ends when the last seat is left. A request that was sent is completed."""
        with self._scope:
            await self._complete.wait()
            try:
                await self._ask()
            finally:
                for part in self._parts:
                    part.end(None)

    @contextmanager
    def join(self) -> Generator["BatchMember"]:
        """Register a member for the block; one that leaves without bringing a part is not waited for any longer."""
        member = BatchMember(self)
        try:
            yield member
        finally:
            if not member.has_submitted:
                self._arrived()
            self._joined -= 1
            if self._joined == 0:
                self._scope.cancel()

    async def submit(self, edit: DocumentEdit) -> ApplyResponse | None:
        """Come with a part; gives what the editor says of it, None when it is to be asked for alone."""
        part = _Part(edit=edit)
        uris = {one.edit.document.uri for one in self._parts}
        if edit.document.uri in uris:
            part.end(None)
        else:
            self._parts.append(part)
        self._arrived()
        await part.over.wait()
        return part.answers[0] if part.answers else None

    async def submit_alone(self, edit: DocumentEdit, *, label: str) -> ApplyResponse:
        """Ask for one part, one after the other."""
        async with self._turn:
            if not self.editor.is_current(edit.document):
                return CHANGED
            return await self.editor.requests.edit(edit, label=label)

    def _arrived(self) -> None:
        self._awaited -= 1
        if self._awaited == 0:
            self._complete.set()

    async def _ask(self) -> None:
        left = self._current(self._parts)
        while len(left) > 1:
            label = f"Tiller: edit {len(left)} files"
            answers = await self.editor.requests.edit_all([one.edit for one in left], label=label)
            if answers is not None:
                for part, answer in zip(left, answers, strict=True):
                    part.end(answer)
                return
            # Nothing of it was done. Whose document had changed is known by now, for that was told before the answer.
            still = self._current(left)
            if len(still) == len(left):
                return
            left = still

    def _current(self, parts: Sequence[_Part]) -> list[_Part]:
        """Return those whose document is what it was; the others end here."""
        current: list[_Part] = []
        for part in parts:
            if self.editor.is_current(part.edit.document):
                current.append(part)
            else:
                part.end(CHANGED)
        return current


class BatchMember:
    """One write among several."""

    def __init__(self, batch: EditBatch) -> None:
        self._batch = batch
        self.has_submitted = False

    @property
    def editor(self) -> Editor:
        """The editor whose documents are edited together."""
        return self._batch.editor

    async def edit(self, edit: DocumentEdit, *, label: str) -> ApplyResponse:
        """Ask for an edit: the first time together with the others, from then on alone.

        Args:
            edit: Edit of one document.
            label: Label for the undo menu if the edit is requested alone.
        """
        if not self.has_submitted:
            self.has_submitted = True
            answer = await self._batch.submit(edit)
            if answer is not None:
                return answer
        return await self._batch.submit_alone(edit, label=label)
