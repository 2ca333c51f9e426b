"""Brings an edit into a document that its user goes on typing in: merges, tries again, and mends what went wrong."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from anyio import to_thread
from msgspec.structs import replace

from agent_core.kernel.errors import (
    EditConflicted,
    EditUnverified,
    StaleText,
    WorkspaceError,
)
from agent_core.kernel.threads import uncancelled
from agent_core.kernel.values import Value
from agent_core.workspace.diff.conflict_message import conflict_message
from agent_core.workspace.diff.merge import MergeResult, merge, merge_all
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.editors.edit_observer import AppliedChange
from tiller_server.lsp.editors.edit_verification import ApplyResponse, edit_error, match_edit
from tiller_server.lsp.editors.editor import EditReport, Send
from tiller_server.lsp.edits.overlays import Overlay
from tiller_server.lsp.edits.preconditions import check_settled, quarantine

TRIES: Final = 3
"""Most attempts to send an edit; after that, the text of a user who types without a pause stands."""
MENDS: Final = 10
"""So often what landed in the wrong place is mended: there the user's text is at stake."""

RefreshOverlay: TypeAlias = Callable[[], Awaitable[Overlay | None]]


class AppliedEdit(Value, frozen=True, kw_only=True):
    """An edit that is in an open document."""

    buffer: Overlay
    """As it was when the edit was sent."""
    before: Document
    """Document that the edit was applied to."""
    edited: str
    """Text that the edit made of `before`."""
    after: Document
    """The document with the edit; right after it, if that was seen."""
    is_alike: bool = False
    """Line ends or the final newline are the editor's own."""
    was_sent: bool = True
    """False: everything that the edit brings was there already."""


class _Goal(Value, frozen=True, kw_only=True):
    """Goal of an edit: the change from one text to another, on top of the present text."""

    base: str
    text: str
    repairing: bool = False
    """An edit landed in the wrong place before."""
    revert_only: bool = False
    """That is taken back, for the edit has no place in the newer text."""

    def over(self, now: str) -> MergeResult:
        if self.repairing:
            # The user's text is at stake: all of it counts, more than a tidy place.
            return MergeResult(text=merge_all(self.base, self.text, now))
        return merge(self.base, self.text, now)


class Rebase:
    """One write to an open document: so that it has what `text` changes in `base`, and all that its user typed since."""

    def __init__(
        self, path: Path, text: str, *, base: str, send: Send, look: RefreshOverlay
    ) -> None:
        """Prepare the write; nothing is sent before `apply`.

        Args:
            path: The file, for messages.
            text: Requested text, as far as the model knows.
            base: Text that the model saw.
            send: Passes an edit on to the editor.
            look: Waits for a pause in the typing, and returns the buffer as it is then.
        """
        self._path = path
        self._text = text
        self._send = send
        self._look = look
        self._goal = _Goal(base=base, text=text)
        self._base = base
        self._first: tuple[str, str] | None = None

    async def apply(self, buffer: Overlay) -> AppliedEdit | None:
        """Send the edit until it is there, a few times at most; takes a bounded time. The caller holds the editor's turn.

        Cancelled, it finishes the attempt that is under way, and returns the outcome if that was the last attempt.

        Returns:
            The landed edit; None when the document is no longer to be edited in this editor, and nothing was done.

        Raises:
            EditConflicted: The user changed the same lines; the text is theirs.
            StaleText: The user's changes came first each time; the text is theirs.
            EditRefused: The editor refused.
            EditUnverified: The edit is there in part, or its outcome is unknown.
        """
        tries = 0
        while True:
            tries += 1
            # The edit is out from here on: whatever happens to us, find out what came of it.
            outcome = await uncancelled(self._try(buffer))
            if isinstance(outcome, AppliedEdit):
                return outcome
            trouble, report = outcome
            if tries >= (TRIES + MENDS if self._goal.repairing else TRIES):
                raise await self._at_last(report, trouble)
            looking = self._look()
            again = await (uncancelled(looking) if self._goal.repairing else looking)
            if again is None or again.editor is not buffer.editor or again.state == "outdated":
                if self._goal.repairing or isinstance(trouble, EditUnverified):
                    raise trouble
                return None
            check_settled(self._path, again)
            buffer = again

    async def _try(self, buffer: Overlay) -> AppliedEdit | tuple[WorkspaceError, EditReport]:
        """Send the edit once. Gives what landed, or what to raise if it may not be tried again."""
        document = buffer.document
        target = await self._target(document)
        if target == document.text and not self._goal.revert_only:
            return AppliedEdit(
                buffer=buffer, before=document, edited=target, after=document, was_sent=False
            )
        self._first = self._first or (document.text, target)
        report = await buffer.editor.apply(
            document, target, send=self._send, was_clean=buffer.state == "clean"
        )
        if report.step is None:
            outcome = self._judged(buffer, target, report)
        else:
            outcome = await self._seen(buffer, report.step)
        if not isinstance(outcome, AppliedEdit):
            return outcome, report
        if self._goal.revert_only:
            now = report.now or outcome.after
            merged = await to_thread.run_sync(merge, self._base, self._text, now.text)
            raise EditConflicted(_conflicted(self._path, merged))
        return outcome

    async def _target(self, document: Document) -> str:
        merged = await to_thread.run_sync(self._goal.over, document.text)
        if not merged.conflicts:
            return merged.text
        if self._first is not None:
            # Of an earlier try there may be a part, in the very lines that the user went on with.
            found = await to_thread.run_sync(match_edit, *self._first, document.text)
            trouble = edit_error(found, ApplyResponse(applied=True), path=self._path)
            if trouble is None or isinstance(trouble, EditUnverified):
                raise self._unsure(trouble, merged)
        raise EditConflicted(_conflicted(self._path, merged))

    def _unsure(self, trouble: EditUnverified | None, merged: MergeResult) -> EditUnverified:
        reason = str(trouble) if trouble else f"The user changed {self._path} where it was edited."
        return EditUnverified(f"{reason} Now there is:\n{conflict_message(merged.conflicts)}")

    def _judged(
        self, buffer: Overlay, target: str, report: EditReport
    ) -> AppliedEdit | WorkspaceError:
        """Derive the outcome from the present text: no change that was the edit alone was seen."""
        trouble = edit_error(report.found, report.answer, path=self._path)
        if trouble is None and report.answer.is_about_versions and report.step is None:
            # The user took away what the edit takes away; whether that is all, the merge tells.
            trouble = self._too_late()
        if trouble is None and report.now is not None:
            is_alike = report.found is not None and report.found.kind == "alike"
            return AppliedEdit(
                buffer=buffer,
                before=buffer.document,
                edited=report.now.text if is_alike else target,
                after=report.now,
                is_alike=is_alike,
            )
        trouble = trouble or EditUnverified(self._closed())
        if self._goal.repairing and not isinstance(trouble, EditUnverified):
            # Nothing of this try is there, but something of an earlier one.
            trouble = EditUnverified(self._misplaced())
        if not self._may_try_again(report, buffer.document):
            quarantine(buffer.editor, report, trouble)
            raise trouble
        return trouble

    def _may_try_again(self, report: EditReport, document: Document) -> bool:
        """Return whether an edit is not, or not wholly, there because the text changed: then nothing of it can still come."""
        now, found, answer = report.now, report.found, report.answer
        if now is None or found is None or answer.applied is None:
            return False
        if now.revision == document.revision:
            return False
        if self._goal.repairing and not answer.applied and found.kind in {"none", "unchanged"}:
            return True
        # Where a part may be among what the user typed, another try might bring it twice.
        return answer.is_about_versions or (
            not found.mixed and (answer.applied or bool(found.applied))
        )

    async def _seen(self, buffer: Overlay, step: AppliedChange) -> AppliedEdit | WorkspaceError:
        """Judge the change that was the edit: in text that it was not made for, it may be in the wrong place."""
        before, after, goal = step.before, step.after, self._goal
        meant = await to_thread.run_sync(goal.over, before.text)
        if meant.conflicts or meant.text != after.text:
            # What it should have made of that text; where it has no place, the user's text comes back.
            self._goal = _Goal(
                base=after.text,
                text=before.text if meant.conflicts else meant.text,
                repairing=True,
                revert_only=bool(meant.conflicts) or goal.revert_only,
            )
            return EditUnverified(self._misplaced())
        return AppliedEdit(buffer=buffer, before=before, edited=after.text, after=after)

    async def _at_last(self, report: EditReport, trouble: WorkspaceError) -> WorkspaceError:
        """Return what is there after the last try: earlier ones may have brought a part."""
        now = report.now
        if now is None or self._first is None or self._goal.repairing:
            return trouble
        found = await to_thread.run_sync(match_edit, *self._first, now.text)
        error = edit_error(found, replace(report.answer, applied=True), path=self._path)
        if error is None or isinstance(error, EditUnverified):
            return error or trouble
        return self._too_late()

    def _too_late(self) -> StaleText:
        message = (
            f"{self._path} was changed in the editor each time it was about to be edited: nothing of the edit is in "
            "it."
        )
        advice = " Read it again; if the user is still typing, do something else first."
        return StaleText(message, advice=advice)

    def _misplaced(self) -> str:
        return (
            f"The edit of {self._path} reached the editor while the user was typing, landed in the wrong place, and "
            "could not be mended. Read the file to see what is there, and tell the user."
        )

    def _closed(self) -> str:
        return f"{self._path} was closed in the editor right after it was edited; read it to see what was kept."


def _conflicted(path: Path, merged: MergeResult) -> str:
    return (
        f"{path} changed in the editor since it was read, in the same lines as the edit: nothing was written. "
        f"These lines are now:\n{conflict_message(merged.conflicts)}"
    )
