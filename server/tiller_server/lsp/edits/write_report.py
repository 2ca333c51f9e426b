"""Report on an edit that is in an open document; pure."""

from typing import Final

from msgspec.structs import replace

from agent_core.workspace import FileText, WriteResult
from agent_core.workspace.diff.conflict_message import changes_message
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.editors.edit_verification import without_ends
from tiller_server.lsp.edits.preconditions import with_note
from tiller_server.lsp.edits.rebase import AppliedEdit

OWN_ENDS: Final = (
    "The editor keeps line ends or a final newline of its own: the rest is as it was written."
)
TYPED: Final = "The text was changed elsewhere meanwhile, by the user or on saving, and that is kept. Changed lines as they are now:"


def describe_write(
    text: str, *, base: FileText, applied: AppliedEdit, written: WriteResult, now: Document
) -> WriteResult:
    """Describe how a document differs from the requested text, and from the text that had been read.

    Args:
        text: Requested text.
        base: File as it had been read.
        applied: Outcome of the edit.
        written: Report so far.
        now: The document as it is now.
    """
    report = replace(
        written,
        before=None if applied.before.text == base.text else applied.before.text,
        edited=None if applied.edited == text else applied.edited,
        text=None if now.text == text else now.text,
    )
    if now.text == text:
        return report
    # What landed may be a merge: then there is more in it than what was asked for.
    if applied.is_alike and without_ends(now.text) == without_ends(text):
        return with_note(report, OWN_ENDS)
    note = f"{TYPED}\n{changes_message(text, now.text)}"
    return replace(with_note(report, note), changed_by_user=True)
