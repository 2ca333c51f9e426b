"""What the agent changed: change sets and their hunks, edits on their way, checkpoints."""

from typing import Literal

from pydantic import model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    Count,
    JsonObject,
    Many,
    Moment,
    Seq,
    SessionParams,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.blocks import Range

__all__ = [
    "ChangeCounts",
    "ChangeSet",
    "ChangesListParams",
    "ChangesResolveParams",
    "ChangesResolveResult",
    "ChangesShowParams",
    "Checkpoint",
    "CheckpointListResult",
    "CheckpointPreviewParams",
    "CheckpointPreviewResult",
    "CheckpointRestoreParams",
    "CheckpointRestoreResult",
    "CheckpointScope",
    "DocumentPrecondition",
    "EditLabel",
    "EditRequest",
    "EditResult",
    "EditedDocument",
    "FileChange",
    "FileHashes",
    "Hunk",
    "PreviewedFile",
    "Resolution",
    "Resolved",
    "SkippedFile",
]

CheckpointScope = TypeAliasType(
    "CheckpointScope", Literal["files", "conversation", "both"] | Vendor
)


class Hunk(WireModel):
    """One stretch of changed text, and what became of it."""

    id: str
    before: Range
    after: Range
    old_text: str
    new_text: str
    state: Literal["pending", "accepted", "rejected", "userEdited", "orphaned"] | Vendor
    tool_call: str


class FileHashes(WireModel):
    """SHA-256 of a file's text before and after; one is missing when the file was not there."""

    before: str | None = None
    after: str | None = None


class FileChange(WireModel):
    """What happened to one file."""

    uri: str
    old_uri: str | None = None
    op: Literal["add", "modify", "delete", "move"] | Vendor
    binary: bool | None = None
    sha256: FileHashes
    state: Literal["onDisk", "unsaved"] | Vendor
    hunks: Many[Hunk]


class ChangeSet(WireModel):
    """Everything that changed since a checkpoint."""

    id: str
    base: str
    """The checkpoint."""
    files: Many[FileChange]
    patch: str | None = None
    """The whole as a git patch, when that was asked for."""


class ChangeCounts(WireModel):
    """A change set as numbers: files touched, lines added and taken away, hunks not looked at."""

    files: Count
    additions: Count
    deletions: Count
    unreviewed: Count


class ChangesListParams(SessionParams):
    """Asks what changed, in a run or since a checkpoint."""

    run: str | None = None
    since: str | None = None
    format: Literal["hunks", "gitPatch"] | Vendor | None = None


class Resolution(WireModel):
    """A verdict on one hunk, file or change set."""

    hunk: str | None = None
    file: str | None = None
    change_set: str | None = None
    action: Literal["accept", "reject", "reviewed"] | Vendor

    @model_validator(mode="after")
    def _one_target(self) -> "Resolution":
        if sum(each is not None for each in (self.hunk, self.file, self.change_set)) != 1:
            raise PydanticCustomError("shape", "name exactly one of hunk, file and changeSet")
        return self


class ChangesResolveParams(SessionParams):
    """Accepts or rejects changes; a note goes to the model."""

    items: Many[Resolution]
    note: str | None = None


class Resolved(WireModel):
    """What became of one verdict."""

    id: str
    status: Literal["done", "conflict", "gone"] | Vendor


class ChangesResolveResult(WireModel):
    """What became of each verdict."""

    results: Many[Resolved]
    seq: Seq


class ChangesShowParams(SessionParams):
    """Asks the client to show a change set."""

    change_set: ChangeSet
    focus: str | None = None


class EditLabel(WireModel):
    """Whose edit it is, and how to call it in the undo list."""

    id: str
    session: str
    run: str
    tool_call: str
    label: str


class DocumentPrecondition(WireModel):
    """What must hold of a document before the edit is applied."""

    uri: str
    version: int | None = None
    sha256: str | None = None
    exists: bool | None = None


class EditRequest(WireModel):
    """Asks the client to apply an edit, as one undo step per document."""

    edit: EditLabel
    workspace_edit: JsonObject
    """LSP's `WorkspaceEdit`."""
    pre: Many[DocumentPrecondition]
    save: Literal["never", "ifWasClean"] | Vendor
    review: Literal["none", "inline", "preview"] | Vendor
    undo: Literal["oneStep"] | Vendor


class EditedDocument(WireModel):
    """What became of one document of an edit."""

    uri: str
    status: Literal["applied", "stale", "refused", "failed"] | Vendor
    version: int | None = None
    sha256: str | None = None
    was_dirty: bool | None = None
    saved: bool | None = None
    why: str | None = None


class EditResult(WireModel):
    """What became of an edit, document by document."""

    documents: Many[EditedDocument]
    changed_by_user: bool | None = None


class Checkpoint(WireModel):
    """A state of the files that can be gone back to."""

    checkpoint: str
    run: str | None = None
    """The run before whose first change it lies; left out: a restore or a rejection, which it takes back."""
    at: Moment
    files: Count


class CheckpointListResult(WireModel):
    """The checkpoints of a session, oldest first."""

    checkpoints: Many[Checkpoint]


class CheckpointPreviewParams(SessionParams):
    """Asks what restoring a checkpoint would do."""

    checkpoint: str
    scope: CheckpointScope


class PreviewedFile(WireModel):
    """What restoring would do to one file."""

    uri: str
    status: Literal["same", "agentOnly", "userEdited", "missing"] | Vendor
    diff: str | None = None
    why: str | None = None
    """Why it cannot be taken back at all; left out: it can."""


class CheckpointPreviewResult(WireModel):
    """What restoring would do, file by file."""

    files: Many[PreviewedFile]


class CheckpointRestoreParams(SessionParams):
    """Goes back to a checkpoint; files that the user edited since are never overwritten unasked."""

    checkpoint: str
    scope: CheckpointScope
    files: Many[str] | None = None
    on_conflict: Literal["skip", "merge", "overwrite"] | Vendor = "skip"


class SkippedFile(WireModel):
    """A file that was left alone, and why."""

    uri: str
    why: str


class CheckpointRestoreResult(WireModel):
    """What was restored, and the checkpoint that undoes it."""

    restored: Many[str]
    skipped: Many[SkippedFile]
    undo: str
    editor_text: str | None = None
    """The words of the run that was taken back, when the conversation was."""
