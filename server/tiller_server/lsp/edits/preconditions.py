"""Whether an open document still is what was read of it, and what is told of a write to it; pure."""

from pathlib import Path

from msgspec.structs import replace

from agent_core.kernel.errors import DocumentContention, EditUnverified, StaleText
from agent_core.workspace import FileBytes, FileText, WriteResult
from tiller_server.lsp.editors.editor import Editor, EditReport
from tiller_server.lsp.edits.overlays import Overlay


def check_merges(path: Path, base: FileText | None, buffer: Overlay) -> FileText:
    """Return the base if an edit of it can be brought into what a document is now.

    Raises:
        StaleText: There is no base, so that nobody has seen what is there.
        DocumentContention: Two editors have unsaved text of it.
        EditUnverified: An earlier edit may still come.
    """
    if base is None:
        message = (
            f"{path} exists already, it is open in the editor: nothing was written. Read it first."
        )
        raise StaleText(message)
    check_settled(path, buffer)
    return base


def check_current(path: Path, base: FileText | FileBytes, buffer: Overlay) -> None:
    """Refuse when a document is not what was read of it, or nobody knows what it will be.

    Raises:
        StaleText: It changed.
        DocumentContention: Two editors have unsaved text of it.
        EditUnverified: An earlier edit may still come.
    """
    check_settled(path, buffer)
    document, below = buffer.document, buffer.disk
    if isinstance(base, FileBytes):
        is_current = below is not None and base.sha256 == below.sha256
    elif buffer.state == "outdated" and isinstance(below, FileText):
        is_current = base.text == below.text
    elif base.source == "buffer":
        is_current = base.sha256 == document.sha256
    else:
        is_current = base.text == document.text
    if not is_current:
        message = f"{path} changed in the editor since it was read: nothing was written."
        raise StaleText(message, advice=" Read it again.")


def check_settled(path: Path, buffer: Overlay) -> None:
    """Refuse when two editors have unsaved text of a file, or an edit of it is on its way."""
    if buffer.rivals:
        names = " and ".join(buffer.rivals)
        message = (
            f"{path} has unsaved text in {names} at once: nothing was written. "
            "Save it in one of them and reload or close it in the other."
        )
        raise DocumentContention(
            message, advice=" Only the user can do that: ask them (DocumentContention)."
        )
    if buffer.editor.notes_of(buffer.document).frozen_at == buffer.document.revision:
        message = (
            f"An earlier edit of {path} is not verified and may still come: nothing was written."
        )
        raise EditUnverified(message, advice=" Read it again first.")


def rebase_base(base: FileText, disk: FileText | FileBytes | None, path: Path) -> FileText:
    """Return what the disk has, if its text is that of the base."""
    if isinstance(disk, FileText) and disk.text == base.text:
        return disk
    message = f"{path} is not on the disk as it was read: nothing was written."
    raise StaleText(message, advice=" Read it again.")


def quarantine(editor: Editor, report: EditReport, trouble: Exception) -> None:
    """Keep edits away from a document to which a lost one may still come."""
    if report.now is not None and isinstance(trouble, EditUnverified):
        editor.notes_of(report.now).frozen_at = report.now.revision


def with_note(written: WriteResult, note: str | None) -> WriteResult:
    """Add a sentence to what is told of a write."""
    if note is None:
        return written
    return replace(written, note=f"{written.note} {note}" if written.note else note)
