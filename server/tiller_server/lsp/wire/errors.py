"""What an error tells a program: the closed list of kinds, and the data that goes with it."""

from collections.abc import Mapping
from typing import Literal, get_args

from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import Count, Json, Many, Uint, Vendor, WireModel

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
        "UnsupportedCapability",
        "VersionMismatch",
        "Internal",
    ],
)

ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind.__value__)

ERROR_MEANINGS: Mapping[ErrorKind, str] = {
    "SessionNotFound": "No session has this id.",
    "SessionBusy": "A run is going on and the request asked not to wait for it.",
    "RunMismatch": "Another run is going on than `expectedRun` says, or other words wait than `ifSeq` or a `queueId` says.",
    "RunNotActive": "Nothing is running that could be meant.",
    "NotSteerable": "What runs now takes no steering.",
    "QueueFull": "Too many prompts wait already, and nothing takes them while the queue is paused.",
    "Overloaded": "The server has too much to do; try again after `retryAfterMs`.",
    "StaleDocument": "The document changed since it was read.",
    "DocumentContention": "Two editors hold unsaved changes of the document.",
    "EditRefused": "The editor did not take the edit.",
    "EditUnverified": "Nobody can say whether the edit landed.",
    "RootNotAllowed": "The path is outside the workspace folders.",
    "WorkspaceUntrusted": "The folder is not trusted yet.",
    "PermissionDenied": "The user or a rule said no.",
    "TooManyDenials": "The run ended because it was refused too often.",
    "CallsRepeated": "The run ended because the model repeated the same tool calls, with the same results or too often in a row.",
    "ModelError": "The model or its provider failed.",
    "RateLimited": "The provider asks to wait longer than we do by ourselves.",
    "ContextOverflow": "The conversation does not fit the model's window, also after compaction.",
    "BudgetExceeded": "A budget of money, tokens, turns or time is used up.",
    "AuthRequired": "No usable model or no key; the message says how to sign in.",
    "CancelTimeout": "Something did not end in time; the run is fenced off.",
    "ReplayGap": "The events asked for are no longer kept; take the snapshot.",
    "CheckpointConflict": "Files changed since, so the checkpoint cannot simply be restored.",
    "UnsupportedCapability": "The request needs something that this server, client or model does not have, as images for a model that takes text alone.",
    "VersionMismatch": "Client and server speak different versions.",
    "Internal": "A fault of the server; its log has the details.",
}


class KilledProcess(WireModel):
    """A process of a tool."""

    pid: Count
    cmd: str


class ErrorData(WireModel):
    """The `data` of an error answer."""

    kind: ErrorKind
    retryable: bool
    retry_after_ms: Count | None = None
    session: str | None = None
    run: str | None = None
    expected: Json = None
    actual: Json = None
    documents: Many[str] | None = None
    provider: str | None = None
    http_status: Uint | None = None
    hint: str | None = None
    happened: str | None = None
    """The message without advice that is for the model."""
    survivors: Many[KilledProcess] | None = None
    """Processes that a cancel could not end."""


class RunError(ErrorData):
    """An error inside a run: what the answer of a request would say, with its sentence."""

    message: str
