"""One verified change of one file, and the points to which files can be taken back; pure."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from agent_core.kernel import EntryId, RunId, ToolCallId
from agent_core.kernel.values import Value

Op: TypeAlias = Literal["add", "modify", "delete", "move"]
ChangeSource: TypeAlias = Literal["tool", "process", "restore", "reject"]
"""`tool`: a tool wrote through the workspace. `process`: a command of a tool made the change, detected by scans before
and after. `restore` and `reject`: a revert by a client."""


class FileVersion(Value, frozen=True, kw_only=True):
    """A file as it was at one moment."""

    sha256: str
    """As the workspace gives it: of the bytes on disk, or of a buffer's text in UTF-8."""
    content: str | None
    """Key under which its bytes are kept (`BlobStore`); None: they are not, for size or because nobody saw them."""
    size: int
    """In bytes."""
    is_text: bool = True
    encoding: str = "utf-8"
    bom: bool = False
    saved: bool = True
    """False: it was only in an editor."""


class Change(Value, frozen=True, kw_only=True):
    """A verified change of one file. Changes are told in their order and never altered."""

    id: str
    """Of the edit; several files may be changed by one."""
    run: RunId | None
    """None: outside any run, as when a person rejects a hunk."""
    call: ToolCallId | None
    by: ChangeSource
    op: Op
    path: Path
    """Absolute and resolved; where it is afterwards, of a deletion where it was."""
    source: Path | None = None
    """Where a moved file was."""
    before: FileVersion | None
    """None: there was nothing."""
    after: FileVersion | None
    """None: nothing is there any more."""
    at_ms: int
    maybe_user_edit: bool = False
    """It happened while a command ran, and an editor had the file open: it may be the user's own."""
    ignored: bool = False
    """A command deleted a file, or a folder with all that was in it, that git ignores: nothing to review, and no copy."""

    @property
    def is_lost(self) -> bool:
        """Whether what was there before cannot be brought back."""
        return self.before is not None and self.before.content is None


class Checkpoint(Value, frozen=True, kw_only=True):
    """A moment to which files and conversation can be taken back: before a run's first change, a restore, a rejection."""

    id: str
    run: RunId | None
    """The run whose first change follows; None: a restore or a rejection follows, which this one takes back."""
    at_ms: int
    changes: int
    """How many changes of this session came before it."""
    leaf: EntryId | None
    """The last entry of the conversation before the run's words."""
    restores: str | None = None
    """The checkpoint to which the restore that follows takes all files back; None: no restore follows, or one of some
    files only."""


def runs_to_undo(checkpoints: Iterable[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of runs that no restore has gone back over, oldest first.

    A restore to the checkpoint of an earlier restore brings the runs back that the earlier one went over.

    Args:
        checkpoints: All of a session, oldest first.
    """
    left: tuple[Checkpoint, ...] = ()
    left_before: dict[str, tuple[Checkpoint, ...]] = {}
    for checkpoint in checkpoints:
        left_before[checkpoint.id] = left
        if checkpoint.run is not None:
            left = (*left, checkpoint)
        elif checkpoint.restores is not None:
            left = left_before.get(checkpoint.restores, left)
    return left
