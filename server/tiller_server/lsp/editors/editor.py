"""One editor as edits see it: its documents, what it can do, and how it is asked."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import anyio
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import asdict

from agent_core.kernel.values import Value
from agent_core.workspace.diff.minimal_edits import TextEdit, minimal_edits
from agent_core.workspace.files.disk.disk_files import PathLocks
from tiller_server.lsp.documents.mirror import Document, Mirror
from tiller_server.lsp.documents.positions import positions
from tiller_server.lsp.editors.capabilities import editor_capabilities
from tiller_server.lsp.editors.edit_observer import AppliedChange, EditObserver, match_change
from tiller_server.lsp.editors.edit_verification import ApplyResponse, EditMatch, match_edit
from tiller_server.lsp.editors.editor_context import EditorContextTracker
from tiller_server.lsp.editors.quirks import name_of, quirks_of, wire_name
from tiller_server.lsp.editors.requests import DocumentEdit, EditClient, EditorRequests, Timing
from tiller_server.lsp.editors.settings import EditorConfiguration
from tiller_server.lsp.jsonrpc.messages import as_object

CHANGED: Final = ApplyResponse(applied=False, reason="it changed before the edit was sent")

Send: TypeAlias = Callable[[DocumentEdit], Awaitable[ApplyResponse]]
"""Passes an edit on to the editor, and gives what it says."""


class Notes(Struct, kw_only=True):
    """Notes about one open document, kept for as long as it is open."""

    epoch: int
    on_disk: str | None = None
    """Hash of a text that the document and the disk had at the same time."""
    ours: str | None = None
    """Hash of the text after our last edit, when everything unsaved in it is ours."""
    ours_over: str | None = None
    """Hash of the file that lay below it."""
    ours_at: int | None = None
    """Revision that our last edit made."""
    frozen_at: int | None = None
    """Revision at which an edit got lost: it may still come."""


class EditReport(Value, frozen=True, kw_only=True):
    """Outcome of an edit."""

    answer: ApplyResponse
    found: EditMatch | None
    """None when the document was closed."""
    now: Document | None
    step: AppliedChange | None = None
    """The change that was the edit, if it was seen alone; then it landed, but perhaps in newer text than it was for."""


class Editor:
    """One attached editor. At most one edit of a document is under way, whoever asks for it."""

    def __init__(
        self,
        client: EditClient,
        mirror: Mirror,
        *,
        name: str,
        quirks: object,
        requests: EditorRequests,
    ) -> None:
        self.name: Final = name
        self.mirror: Final = mirror
        self._quirks = quirks_of(name, quirks)
        self.capabilities: Final = requests.capabilities
        self.requests: Final = requests
        self.context_tracker: Final = EditorContextTracker()
        self.configuration: Final = EditorConfiguration(client)
        self._turns = PathLocks()
        self.gathering: Final = anyio.Lock()
        """Held while an edit of several documents is under way."""
        self._notes: dict[str, Notes] = {}

    @classmethod
    def of(
        cls, connection: EditClient, mirror: Mirror, *, timing: Timing | None = None
    ) -> "Editor":
        """Make the editor of a connection that has been initialized."""
        params = connection.client_params
        options = as_object(params.get("initializationOptions")) or {}
        agent = as_object(options.get("agent")) or {}
        name, quirks = name_of(params), agent.get("quirks")
        capabilities = editor_capabilities(params, quirks_of(name, quirks))
        requests = EditorRequests(connection, capabilities, timing or Timing())
        return cls(connection, mirror, name=name, quirks=quirks, requests=requests)

    @property
    def blocking_dialogs(self) -> bool:
        """Nothing else happens in the editor while a question is open."""
        return self._quirks.blocking_dialogs

    @property
    def opens_notebooks(self) -> bool:
        """It shows notebooks as such."""
        return self._quirks.opens_notebooks

    def quirks_in_force(self) -> dict[str, bool]:
        """Return what is assumed of this editor, by the names that users may set."""
        return {wire_name(name): value for name, value in asdict(self._quirks).items()}

    def lock(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Wait until no other edit of a file is under way in this editor, and hold it off."""
        return self._turns.hold(path)

    def notes_of(self, document: Document) -> Notes:
        """Return what is remembered of a document; nothing when it was opened anew."""
        notes = self._notes.get(document.uri)
        if notes is None or notes.epoch != document.epoch:
            is_open = self.mirror.get
            self._notes = {uri: one for uri, one in self._notes.items() if is_open(uri)}
            notes = self._notes[document.uri] = Notes(epoch=document.epoch)
        return notes

    async def wait_for_typing_pause(self, document: Document) -> None:
        """Wait for a pause in the user's typing, so that an edit does not become one undo step with it.

        Someone who types without a pause does not keep the edit away for ever. Where two edits of ours would become one
        step too, it waits until they do not.
        """
        mirror, timing = self.mirror, self.requests.timing
        end = mirror.clock() + timing.patience_s
        while (now := mirror.get(document.uri)) is not None:
            left_s = end - mirror.clock()
            if self.context_tracker.is_inserting(now.uri) and left_s > 0:
                await self.context_tracker.changed(timeout_s=left_s)
                continue
            if now.revision == self.notes_of(now).ours_at:
                if not self._quirks.late_undo_steps:
                    return
                until = now.changed_at + timing.undo_step_s  # decision 0033
            else:
                until = min(now.changed_at + timing.pause_s, end)
            left = until - mirror.clock()
            if left <= 0:
                return
            _ = await mirror.changed(now.uri, after=now.revision, timeout_s=left)

    async def apply(
        self, document: Document, target: str, *, send: Send, was_clean: bool
    ) -> EditReport:
        """Ask for the edit that gives a document another text, and look what came of it.

        Takes a bounded time. A caller that is cancelled meanwhile should finish this first: the edit is out.

        Args:
            document: As it was when the edit was made; the edit is for this version only.
            target: The text that it shall have.
            send: Passes the edit on.
            was_clean: Nothing in the document is unsaved.
        """
        edits, lsp_edits = await to_thread.run_sync(_text_edits, document, target)
        if not self.is_current(document):
            return await self._compared(document, target, CHANGED)
        scope = anyio.CancelScope()
        asked_at = anyio.current_time()
        observer = EditObserver(
            document, edits, target, scope=scope, grace_s=self.requests.timing.verify_s
        )
        with self.mirror.watch(document.uri, observer.on_change):
            answer = ApplyResponse(applied=None)
            with scope:
                part = DocumentEdit(
                    document=document, edits=lsp_edits, target=target, was_clean=was_clean
                )
                answer = await send(part)
            end = self._wait_until(answer, asked_at)
            report = await self._settle(document, answer, observer, edits, end=end)
            # The editor may not have told of a change; what it gives when it is asked is the last word.
            if _is_in_doubt(report) and await self._reread(document):
                return await self._report(document, answer, observer, edits)
            return report

    def is_current(self, document: Document) -> bool:
        """Return whether a document is as far as is known what it was."""
        now = self.mirror.get(document.uri)
        return now is not None and now.revision == document.revision

    async def wait_closed(self, document: Document) -> None:
        """Wait until a document is closed or another one, but no longer than a refusal may take."""
        if self.is_current(document):
            wait_s = self.requests.timing.refused_s
            _ = await self.mirror.changed(document.uri, after=document.revision, timeout_s=wait_s)

    async def _reread(self, document: Document) -> bool:
        """Ask for the text of a document; tell whether that brought anything new."""
        now = self.mirror.get(document.uri)
        reply = None if now is None else await self.requests.read(document)
        if reply is not None:
            self.mirror.take(document.uri, reply[0], version=reply[1])
        return self.mirror.get(document.uri) is not now

    async def _settle(
        self,
        document: Document,
        answer: ApplyResponse,
        observer: EditObserver,
        edits: Sequence[TextEdit],
        *,
        end: float,
    ) -> EditReport:
        """Wait for the change that the answer speaks of, as long as it makes sense."""
        while True:
            # Asked before looking, so that the last look comes after the time is up.
            is_last = anyio.current_time() >= end
            report = await self._report(document, answer, observer, edits)
            if is_last or (report.found and report.found.is_whole):
                return report
            # To load a document anew, some editors close it and open it again.
            after = None if report.now is None else report.now.revision
            left = max(0.0, end - anyio.current_time())
            _ = await self.mirror.changed(document.uri, after=after, timeout_s=left)

    def _wait_until(self, answer: ApplyResponse, asked_at: float) -> float:
        now = anyio.current_time()
        if answer.applied or answer.is_about_versions:
            # What the editor knows already is on its way to us too.
            return now + self.requests.timing.verify_s
        if answer.applied is None:
            return now
        # Some editors show the edit and leave it to the user.
        by_hand = (
            asked_at + self.requests.timing.answer_s if "manual" in answer.reason.lower() else now
        )
        return max(now + self.requests.timing.refused_s, by_hand)

    async def _report(
        self,
        document: Document,
        answer: ApplyResponse,
        observer: EditObserver,
        edits: Sequence[TextEdit],
    ) -> EditReport:
        step = observer.step
        refused = answer.applied is False
        if step is None and not refused and (changes := observer.unlooked()):
            step = observer.step = await to_thread.run_sync(
                partial(match_change, changes, edits, first=document, target=observer.target)
            )
        if step is not None:
            now = self.mirror.get(document.uri)
            kind = "exact" if step.before.text == document.text else "with others"
            return EditReport(answer=answer, found=EditMatch(kind=kind), now=now, step=step)
        return await self._compared(document, observer.target, answer)

    async def _compared(self, document: Document, target: str, answer: ApplyResponse) -> EditReport:
        now = self.mirror.get(document.uri)
        if now is None:
            return EditReport(answer=answer, found=None, now=None)
        found = await to_thread.run_sync(match_edit, document.text, target, now.text)
        return EditReport(answer=answer, found=found, now=now)


def _is_in_doubt(report: EditReport) -> bool:
    """Return whether an edit was not seen although the editor did not refuse it."""
    is_seen = report.found is not None and report.found.is_whole
    return report.answer.applied is not False and report.now is not None and not is_seen


def _text_edits(document: Document, target: str) -> tuple[list[TextEdit], list[dict[str, object]]]:
    """Return the edits, and as LSP has them."""
    edits = minimal_edits(document.text, target)
    offsets = [offset for one in edits for offset in (one.start, one.end)]
    places = [
        {"line": line, "character": character}
        for line, character in positions(document.text, offsets, document.lines.encoding)
    ]
    return edits, [
        {"range": {"start": start, "end": end}, "newText": one.new_text}
        for one, start, end in zip(edits, places[::2], places[1::2], strict=True)
    ]
