"""Report on an edit that is in an open document; pure."""

from typing import Final

from msgspec.structs import replace

from agent_core.workspace import FileText, Written
from agent_core.workspace.diff.conflict_message import changes_words
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.editors.edit_verification import without_ends
from tiller_server.lsp.edits.preconditions import noted
from tiller_server.lsp.edits.rebase import Landed

OWN_ENDS: Final = (
    "The editor keeps line ends or a final newline of its own: the rest is as it was written."
)
TYPED: Final = "The text was changed elsewhere meanwhile, by the user or on saving, and that is kept. Changed lines as they are now:"


def written_as(
    text: str, *, base: FileText, landed: Landed, written: Written, now: Document
) -> Written:
    """Describe how a document differs from the requested text, and from the text that had been read.

    Args:
        text: Requested text.
        base: File as it had been read.
        landed: Outcome of the edit.
        written: Report so far.
        now: The document as it is now.
    """
    known = replace(
        written,
        before=None if landed.before.text == base.text else landed.before.text,
        edited=None if landed.edited == text else landed.edited,
        text=None if now.text == text else now.text,
    )
    if now.text == text:
        return known
    # What landed may be a merge: then there is more in it than what was asked for.
    if landed.is_alike and without_ends(now.text) == without_ends(text):
        return noted(known, OWN_ENDS)
    words = f"{TYPED}\n{changes_words(text, now.text)}"
    return replace(noted(known, words), changed_by_user=True)
