"""Changes of the agent: change sets and their hunks, edit requests, checkpoints."""

from typing import Final, Literal

from pydantic import model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    FailFastList,
    SafeCount,
    Seq,
    SessionParams,
    Timestamp,
    UncheckedJsonObject,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.blocks import Range
from tiller_server.lsp.wire.method import client_notification, client_request, request

__all__ = [
    "CHANGES_LIST",
    "CHANGES_RESOLVE",
    "CHANGES_SHOW",
    "CHECKPOINT_LIST",
    "CHECKPOINT_PREVIEW",
    "CHECKPOINT_RESTORE",
    "EDIT_APPLY",
    "SERVED",
    "TASK_CHANGES",
    "TASK_DISCARD",
    "TASK_MERGE",
    "ChangeCounts",
    "ChangeSet",
    "ChangesListParams",
    "ChangesResolveParams",
    "ChangesResolveResult",
    "ChangesShowParams",
    "Checkpoint",
    "CheckpointListParams",
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
    "TaskChangesParams",
    "TaskDiscardParams",
    "TaskDiscardResult",
    "TaskMergeParams",
    "TaskMergeResult",
]

CheckpointScope = TypeAliasType(
    "CheckpointScope", Literal["files", "conversation", "both"] | Vendor
)


class Hunk(WireModel):
    """Contiguous change of a file, and its review state."""

    id: str
    before: Range
    """Where the hunk was in a text without the agent's hunks."""
    after: Range
    """Where the hunk is now."""
    old_text: str
    new_text: str
    """Text that stands there now."""
    state: Literal["pending", "accepted", "rejected", "userEdited", "orphaned"] | Vendor
    """`userEdited` counts as accepted; of an `orphaned` hunk nothing is left in the text."""
    tool_call: str
    """Tool call that made it."""


class FileHashes(WireModel):
    """SHA-256 of a file's text before and after; one is left out when there was no file."""

    before: str | None = None
    after: str | None = None


class FileChange(WireModel):
    """Change of one file."""

    uri: str
    old_uri: str | None = None
    """Name before a move."""
    op: Literal["add", "modify", "delete", "move"] | Vendor
    binary: bool | None = None
    sha256: FileHashes
    state: Literal["onDisk", "unsaved"] | Vendor
    """`unsaved`: the change is in an editor and not on disk."""
    hunks: FailFastList[Hunk]


class ChangeSet(WireModel):
    """Changes since a checkpoint."""

    id: str
    """Id for `agent/changes/resolve`: a run, a checkpoint or the session."""
    base: str
    """Checkpoint before the first of these changes."""
    files: FailFastList[FileChange]
    """Files that changed."""
    patch: str | None = None
    """All changes as a git patch, with `format: "gitPatch"`."""


class ChangeCounts(WireModel):
    """Size of a change set."""

    files: SafeCount
    """Files that changed."""
    additions: SafeCount
    """Lines added."""
    deletions: SafeCount
    """Lines removed."""
    unreviewed: SafeCount
    """Hunks without a decision."""


class ChangesListParams(SessionParams):
    """Return the changes of the session, of a run, or since a checkpoint."""

    run: str | None = None
    """Only the changes of this run."""
    since: str | None = None
    """Only the changes since this checkpoint."""
    format: Literal["hunks", "gitPatch"] | Vendor | None = None
    """`hunks` (default) or `gitPatch`: a `patch` in place of hunks."""


class Resolution(WireModel):
    """Decision on one hunk, file or change set: exactly one of `hunk`, `file` and `changeSet`."""

    hunk: str | None = None
    """Hunk id."""
    file: str | None = None
    """File, as a URI."""
    change_set: str | None = None
    """Id of a `ChangeSet`."""
    action: Literal["accept", "reject", "reviewed"] | Vendor

    @model_validator(mode="after")
    def _one_target(self) -> "Resolution":
        if sum(each is not None for each in (self.hunk, self.file, self.change_set)) != 1:
            raise PydanticCustomError("shape", "name exactly one of hunk, file and changeSet")
        return self


class ChangesResolveParams(SessionParams):
    """Accept or reject changes."""

    items: FailFastList[Resolution]
    """Decisions, at most 1,000."""
    note: str | None = None
    """Text for the model, at most 16,384 bytes."""


class Resolved(WireModel):
    """Outcome of one decision."""

    id: str
    """Hunk, file or change set of the decision."""
    status: Literal["done", "conflict", "gone"] | Vendor
    """`conflict`: another decision or change of these lines came first; `gone`: there is no such hunk any more."""


class ChangesResolveResult(WireModel):
    """Outcome of each decision."""

    results: FailFastList[Resolved]
    """Outcomes, in the order of `items`."""
    seq: Seq
    """Last event of the session."""


class ChangesShowParams(SessionParams):
    """Show a change set to the user."""

    change_set: ChangeSet
    """The changes."""
    focus: str | None = None
    """File to show first, as a URI."""


class EditLabel(WireModel):
    """Origin of an edit, and its name in the undo list."""

    id: str
    """Edit id, as in the `edit.*` events."""
    session: str
    run: str
    tool_call: str
    label: str
    """Text for the undo menu."""


class DocumentPrecondition(WireModel):
    """Condition that a document must meet before the edit is applied."""

    uri: str
    """The document."""
    version: int | None = None
    """Version that it must have."""
    sha256: str | None = None
    """SHA-256 that its text must have."""
    exists: bool | None = None
    """Whether it must exist."""


class EditRequest(WireModel):
    """Apply a workspace edit, as one undo step per document."""

    edit: EditLabel
    """Origin and label of the edit."""
    workspace_edit: UncheckedJsonObject
    """LSP `WorkspaceEdit`."""
    pre: FailFastList[DocumentPrecondition]
    """Conditions; an edit whose conditions do not hold is answered with `stale`."""
    save: Literal["never", "ifWasClean"] | Vendor
    """`ifWasClean`: save documents that had no unsaved text before the edit."""
    review: Literal["none", "inline", "preview"] | Vendor
    """How the client shows the edit."""
    undo: Literal["oneStep"] | Vendor
    """One undo step per document."""


class EditedDocument(WireModel):
    """Outcome of an edit in one document."""

    uri: str
    status: Literal["applied", "stale", "refused", "failed"] | Vendor
    version: int | None = None
    """Version after the edit."""
    sha256: str | None = None
    """SHA-256 of the text after the edit."""
    was_dirty: bool | None = None
    """Whether it had unsaved text before the edit."""
    saved: bool | None = None
    why: str | None = None
    """Reason, for `stale`, `refused` and `failed`."""


class EditResult(WireModel):
    """Outcome of an edit."""

    documents: FailFastList[EditedDocument]
    """Outcome of each document."""
    changed_by_user: bool | None = None
    """Whether the user changed the edit before it was applied."""


class Checkpoint(WireModel):
    """State of the files that can be restored."""

    checkpoint: str
    run: str | None = None
    """Run before whose first change it was made; left out: it was made before a restore or a rejection, and undoes it."""
    at: Timestamp
    files: SafeCount
    """Files that it holds."""


class CheckpointListParams(SessionParams):
    """Lists the checkpoints of a session."""


class CheckpointListResult(WireModel):
    """Checkpoints of a session."""

    checkpoints: FailFastList[Checkpoint]
    """Oldest first."""
    latest_run: str | None = None
    """Checkpoint of the newest run that changed something and was not taken back yet; left out: there is none."""


class CheckpointPreviewParams(SessionParams):
    """Return what restoring a checkpoint would do to each file."""

    checkpoint: str
    """Checkpoint id."""
    scope: CheckpointScope
    """Part that would be restored; `conversation` alone touches no file."""


class PreviewedFile(WireModel):
    """Effect of a restore on one file."""

    uri: str
    status: Literal["same", "agentOnly", "userEdited", "missing"] | Vendor
    """See the table of statuses."""
    diff: str | None = None
    """Unified diff of what restoring does."""
    why: str | None = None
    """Why it cannot be restored at all; left out: it can."""


class CheckpointPreviewResult(WireModel):
    """Preview of a restore."""

    files: FailFastList[PreviewedFile]
    """Files that changed since the checkpoint."""


class CheckpointRestoreParams(SessionParams):
    """Restore the files, the conversation, or both, to a checkpoint."""

    checkpoint: str
    """Checkpoint id."""
    scope: CheckpointScope
    """Part that is restored."""
    files: FailFastList[str] | None = None
    """Only these files, as URIs, and files that were moved to or from them; left out: all."""
    on_conflict: Literal["skip", "merge", "overwrite"] | Vendor = "skip"
    """Handling of files that were changed by others too."""


class SkippedFile(WireModel):
    """File that was not restored."""

    uri: str
    why: str


class CheckpointRestoreResult(WireModel):
    """Outcome of a restore."""

    restored: FailFastList[str]
    """Files that were restored, as URIs."""
    skipped: FailFastList[SkippedFile]
    """Files that were left as they are."""
    undo: str
    """Checkpoint that undoes this restore."""
    editor_text: str | None = None
    """Prompt of the run that was taken back, when the conversation was restored."""


class TaskChangesParams(SessionParams):
    """Return what a task changed in its worktree, as changes of the files of the workspace."""

    id: str
    """`t1`, `t2` …"""
    format: Literal["hunks", "gitPatch"] | Vendor | None = None
    """`hunks` (default) or `gitPatch`: a `patch` in place of hunks."""


class TaskMergeParams(SessionParams):
    """Merge what a task changed in its worktree into the files of the workspace; all of it or nothing."""

    id: str
    """`t1`, `t2` …"""
    hunks: FailFastList[str] | None = None
    """Hunks to merge; left out, and `files` too: everything."""
    files: FailFastList[str] | None = None
    """Files to merge whole, as URIs."""


class TaskMergeResult(WireModel):
    """Outcome of a merge."""

    written: FailFastList[str]
    """Files that were changed, as URIs."""
    unchanged: FailFastList[str]
    """Files that had the changes already, as URIs."""
    checkpoint: str | None = None
    """Checkpoint that takes the merge back; left out: nothing was written."""


class TaskDiscardParams(SessionParams):
    """Remove the worktree of a task."""

    id: str
    """`t1`, `t2` …"""
    force: bool | None = None
    """Also if it has changes that were not merged."""


class TaskDiscardResult(WireModel):
    """Outcome of the removal of a worktree."""

    kept_ref: str
    """Git ref that keeps its content."""


CHANGES_LIST: Final = request("agent/changes/list", ChangesListParams, ChangeSet)
CHANGES_RESOLVE: Final = request(
    "agent/changes/resolve", ChangesResolveParams, ChangesResolveResult
)
CHECKPOINT_LIST: Final = request(
    "agent/checkpoint/list", CheckpointListParams, CheckpointListResult
)
CHECKPOINT_PREVIEW: Final = request(
    "agent/checkpoint/preview", CheckpointPreviewParams, CheckpointPreviewResult
)
CHECKPOINT_RESTORE: Final = request(
    "agent/checkpoint/restore", CheckpointRestoreParams, CheckpointRestoreResult
)
TASK_CHANGES: Final = request("agent/task/changes", TaskChangesParams, ChangeSet)
TASK_MERGE: Final = request("agent/task/merge", TaskMergeParams, TaskMergeResult)
TASK_DISCARD: Final = request("agent/task/discard", TaskDiscardParams, TaskDiscardResult)
EDIT_APPLY: Final = client_request("agent/edit/apply", EditRequest, EditResult)
CHANGES_SHOW: Final = client_notification("agent/changes/show", ChangesShowParams)
SERVED: Final = (
    CHANGES_LIST,
    CHANGES_RESOLVE,
    CHECKPOINT_LIST,
    CHECKPOINT_PREVIEW,
    CHECKPOINT_RESTORE,
    TASK_CHANGES,
    TASK_MERGE,
    TASK_DISCARD,
)
"""Methods of this module that clients call, in the order of PROTOCOL.md."""
