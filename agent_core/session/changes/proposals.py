"""Does again an edit that could not be done when the agent made it: because its user wants that now."""

from pathlib import Path
from typing import Final, Literal

from anyio import to_thread

from agent_core.kernel.errors import EditConflicted, FileMissing
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage, Text
from agent_core.session.changes.recorded_files import ChangeOrigin, RecordedFiles
from agent_core.session.context import SessionContext
from agent_core.session.permissions.guarded_files import GuardedFiles
from agent_core.workspace import FileText, WriteResult
from agent_core.workspace.diff.conflict_message import conflict_message
from agent_core.workspace.diff.merge import merge

CUSTOM_TYPE: Final = "tiller.proposal"


class ApplyResult(Value, frozen=True, kw_only=True):
    """Result of applying an edit again."""

    status: Literal["applied", "nothing", "conflict"]
    """`nothing`: everything that the edit brings was there already. `conflict`: nothing was written."""
    written: WriteResult | None = None
    why: str | None = None
    """Reason for the conflict; None without one."""


async def apply_again(parts: SessionContext, path: Path, *, before: str, after: str) -> ApplyResult:
    """Bring the change from one text to another into what a file is now; the model is told with the next prompt.

    Raises:
        WorkspaceError: The file cannot be written; it is as it was.
    """
    workspace = parts.place.workspace
    path = await workspace.files.resolve(str(path), "write")
    try:
        found = await workspace.files.read(path)
    except FileMissing:
        return ApplyResult(status="conflict", why="the file is not there any more")
    if not isinstance(found, FileText):
        return ApplyResult(status="conflict", why="the file is no text any more")
    merged = await to_thread.run_sync(merge, before, after, found.text)
    if merged.conflicts:
        conflict_lines = conflict_message(merged.conflicts)
        return ApplyResult(
            status="conflict", why=f"the same lines were changed since:\n{conflict_lines}"
        )
    if merged.text == found.text:
        return ApplyResult(status="nothing")
    try:
        written = await _files(parts, path).write(path, merged.text, base=found)
    except EditConflicted as error:
        return ApplyResult(status="conflict", why=str(error))
    message = CustomMessage(
        custom_type=CUSTOM_TYPE,
        content=(Text(text=f"The user has applied your edit of {path} that was not applied."),),
        display=False,
        details={"path": str(path)},
        at_ms=parts.clock.now_ms(),
    )
    await parts.deferred.accept(message, flush_at="prompt")
    return ApplyResult(status="applied", written=written)


def _files(parts: SessionContext, path: Path) -> RecordedFiles:
    """Return the files for this one edit; a protected one was agreed to when the agent made it, and is again now."""
    place = parts.place
    guarded = GuardedFiles(
        place.workspace.files,
        situation=lambda: place.permissions.snapshot(tuple(place.workspace.roots)),
        approved=lambda: (path,),
        secrets=place.secrets,
    )
    return RecordedFiles(
        guarded,
        parts.changes,
        author=ChangeOrigin(edit=parts.new_id()),
        publish=parts.publisher.publish,
        now_ms=parts.clock.now_ms,
    )
