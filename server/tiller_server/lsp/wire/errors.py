"""Error data for programs: the closed list of kinds, and the data of each error."""

from collections.abc import Mapping
from typing import Literal, get_args

from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    FailFastList,
    SafeCount,
    Uint,
    UncheckedJson,
    Vendor,
    WireModel,
)

__all__ = [
    "ERROR_KINDS",
    "ERROR_MEANINGS",
    "ErrorData",
    "ErrorKind",
    "KilledProcess",
    "RunError",
    "RunStatus",
]

RunStatus = TypeAliasType(
    "RunStatus",
    Literal["completed", "cancelled", "failed", "interrupted", "budget", "refused"] | Vendor,
)

ErrorKind = TypeAliasType(
    "ErrorKind",
    Literal[
        "SessionNotFound",
        "SessionBusy",
        "RunMismatch",
        "RunNotActive",
        "NotSteerable",
        "QueueFull",
        "Overloaded",
        "StaleDocument",
        "DocumentContention",
        "EditRefused",
        "EditUnverified",
        "RootNotAllowed",
        "WorkspaceUntrusted",
        "PermissionDenied",
        "TooManyDenials",
        "CallsRepeated",
        "ModelError",
        "RateLimited",
        "ContextOverflow",
        "BudgetExceeded",
        "AuthRequired",
        "CancelTimeout",
        "ReplayGap",
        "CheckpointConflict",
        "MergeConflicted",
        "WorktreeRefused",
        "UnsupportedCapability",
        "VersionMismatch",
        "Internal",
    ],
)

ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind.__value__)

ERROR_MEANINGS: Mapping[ErrorKind, str] = {
    "SessionNotFound": "No session has this id, or none is open.",
    "SessionBusy": "A run, a compaction or a command is going on, or another process writes the session.",
    "RunMismatch": "Another run is going on than `expectedRun` names, or the queue is not the one that `ifSeq` or a `queueId` names.",
    "RunNotActive": "No run is going on, or the run left nothing undone.",
    "NotSteerable": "The current activity takes no steering.",
    "QueueFull": "Too many prompts wait, and the queue is paused, so that waiting does not help.",
    "Overloaded": "The server has too much to do; try again after `retryAfterMs`.",
    "StaleDocument": "The document changed since it was read.",
    "DocumentContention": "Two editors hold unsaved changes of the document.",
    "EditRefused": "The editor did not apply the edit.",
    "EditUnverified": "It is unknown whether the edit was applied.",
    "RootNotAllowed": "The path is outside the workspace folders, or no folder is open.",
    "WorkspaceUntrusted": "The folder is not trusted.",
    "PermissionDenied": "The user, a rule, the settings or an extension refused.",
    "TooManyDenials": "The run ended because it was refused too often.",
    "CallsRepeated": "The run ended because the model repeated the same tool calls, with the same results or too often in a row.",
    "ModelError": "The model or its provider failed.",
    "RateLimited": "The provider asks for a longer wait than the server does by itself.",
    "ContextOverflow": "The conversation does not fit the model's context window, also after compaction.",
    "BudgetExceeded": "A budget of money, tokens, turns or time is used up, or a budget of money cannot be applied because the model's price is unknown.",
    "AuthRequired": "No usable model of that name, or no key; the message says how to sign in.",
    "CancelTimeout": "Something did not end in time; the run can send nothing more.",
    "ReplayGap": "The events asked for are no longer stored; take the snapshot.",
    "MergeConflicted": "Files were changed here and in a worktree in ways that exclude one another; nothing was merged.",
    "WorktreeRefused": "A git worktree cannot be made, read or removed; nothing was done.",
    "CheckpointConflict": "Files changed since, and none could be restored.",
    "UnsupportedCapability": "The request needs something that this server, client, model or session does not have: images for a text model, an unknown entry or checkpoint, a folder that is no repository.",
    "VersionMismatch": "Client and server speak different versions.",
    "Internal": "Fault of the server, of its files or of a configuration file; the log has the details.",
}


class KilledProcess(WireModel):
    """Process of a tool."""

    pid: SafeCount
    cmd: str
    """Its command line."""


class ErrorData(WireModel):
    """The `data` of an error response."""

    kind: ErrorKind
    retryable: bool
    """Whether the same request may succeed later."""
    retry_after_ms: SafeCount | None = None
    """How long to wait before the same request."""
    session: str | None = None
    run: str | None = None
    expected: UncheckedJson = None
    """Value that the request expected."""
    actual: UncheckedJson = None
    """Value that was found instead."""
    documents: FailFastList[str] | None = None
    """Documents concerned, as URIs."""
    provider: str | None = None
    http_status: Uint | None = None
    """Status of the provider's answer."""
    hint: str | None = None
    """Recommended next step."""
    happened: str | None = None
    """The message without its advice for the model."""
    survivors: FailFastList[KilledProcess] | None = None
    """Processes that a cancel could not end."""


class RunError(ErrorData):
    """Error inside a run."""

    message: str
    """One sentence."""
