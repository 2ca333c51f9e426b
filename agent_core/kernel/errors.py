"""The tree of all errors that Tiller's core raises on purpose.

Any other exception is a bug: it is logged with its run and ends that run.

    TillerError
    ├── UsageError                invalid input from the caller
    │   ├── ConfigError           a settings or models file cannot be read (path, line, column)
    │   ├── ModelUnknown          no model of that name
    │   ├── FilesUnsupported      files cannot be sent to the current model
    │   ├── ImagesUnsupported     images cannot be sent to the current model
    │   ├── AttachmentRefused     other bytes than its hash, or no such attachment
    │   │   ├── AttachmentTooLarge  more bytes than the limit
    │   │   └── AttachmentUntyped   no image, PDF or text
    │   ├── WorkspaceMissing      the workspace is not a folder
    │   ├── ToolSetInvalid        an empty or unknown set of tools
    │   ├── BudgetRefused         a budget is wider than the settings allow
    │   ├── ExtensionBroken       an extension cannot be loaded, or does what extensions cannot
    │   │   └── Unsupported       not possible in an editor client
    │   └── PriceUnknown          a cost budget, and a model without a price
    ├── SessionError
    │   ├── SessionBusy           a run is going on and no delivery was chosen
    │   ├── SessionClosed         the session was closed
    │   ├── SessionNotFound       no session of that id
    │   ├── SessionLocked         another process writes this session
    │   ├── RunMismatch           the caller expected another run
    │   │   └── QueueStale        the caller expected another queue
    │   ├── RunNotActive          no run is active
    │   ├── TooManyDenials        the run ended after too many denials
    │   ├── CallsRepeated         the run ended because the model repeated the same calls
    │   ├── BudgetExceeded        the run used up its budget
    │   ├── QueueFull             too many prompts are queued
    │   ├── EntryUnknown          the session has no such entry
    │   ├── ForkRefused           no new session can be forked there
    │   ├── CommandRefused        an extension refused the user's command
    │   ├── SwitchRefused         an extension refused to switch a window to another session
    │   ├── ContextStale          an extension uses a context from before its reload
    │   ├── CheckpointUnknown     the session has no such checkpoint
    │   └── CheckpointConflict    nothing was reverted, because of conflicting changes
    ├── StorageError              the session file cannot be read or written
    │   ├── StorageUnavailable    disk full, read-only or gone; retried
    │   ├── SessionDamaged        not a session file
    │   └── IndexUnavailable      no full-text search on this system
    ├── WorkspaceError            the model reads the text too, so it names the next step
    │   ├── PathRefused           outside the roots
    │   ├── FileMissing           the file does not exist
    │   ├── NotAFile              a folder or device
    │   ├── NotAFolder            a file or device
    │   ├── FileTooLarge          more bytes than the limit
    │   ├── NotText               binary, or an unknown encoding
    │   ├── AccessRefused         the operating system denied access
    │   ├── ProcessGone           a program no longer reads its input
    │   ├── WorkspaceUnreachable  the machine or container of the workspace does not answer
    │   ├── StaleText             the text changed since it was read
    │   │   └── EditConflicted    in the same lines as the edit
    │   ├── EditRefused           the editor did not take the edit
    │   │   ├── DocumentContention  two editors have unsaved text of it
    │   │   └── EditDeferred        it is kept as a proposal for the user
    │   └── EditUnverified        it is unknown whether the edit was applied
    ├── ToolError                 a tool call that failed in a way the model can act on
    │   └── ArgumentsInvalid      its arguments do not fit the schema
    └── ProviderError             a model call failed (kind, status, retry-after)
"""

from pathlib import Path
from typing import ClassVar, Literal

from agent_core.kernel.ids import SessionId

ProviderErrorKind = Literal[
    "auth",
    "rate_limit",
    "quota",
    "context_overflow",
    "not_found",
    "invalid_request",
    "server",
    "network",
    "timeout",
    "protocol",
    "refused",
]
"""Why a model call failed, as far as a catcher acts on it.

`network`, `timeout`, `server` and `rate_limit` may pass by waiting; `context_overflow` by compacting;
`protocol` is an answer that breaks the provider's own rules (a cut stream, bad JSON).
"""


class TillerError(Exception):
    """The root: one clear sentence as text, and a kind that front ends pass on."""

    kind: ClassVar[str] = "Internal"
    """A kind of the wire's closed list."""
    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later without anything being changed."""

    def __init__(self, message: str = "", *, advice: str = "") -> None:
        """Create an error.

        Args:
            message: The failure, with the next step if it is the same for users and models.
            advice: The next step for a model; appended to the message.
        """
        super().__init__(f"{message}{advice}")
        self.advice = advice

    @property
    def happened(self) -> str | None:
        """The text without its advice, for people; None: it is for them as it is."""
        return str(self).removesuffix(self.advice) if self.advice else None


class UsageError(TillerError):
    """The input of the caller cannot be used."""

    kind = "UnsupportedCapability"


class ConfigError(UsageError):
    """A configuration file cannot be read; the rest of the configuration still holds."""

    kind = "Internal"

    def __init__(
        self, message: str, *, path: Path, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.column = column


class ModelUnknown(UsageError):
    """No model of that name, or none usable at all."""

    kind = "AuthRequired"


class FilesUnsupported(UsageError):
    """A prompt has PDF files, and the model in force is sent none; nothing was kept."""

    kind = "UnsupportedCapability"


class ImagesUnsupported(UsageError):
    """A prompt has images, and the model in force is sent none; nothing was kept."""

    kind = "UnsupportedCapability"


class AttachmentRefused(UsageError):
    """An attachment is not stored, or has other bytes than its hash names; nothing was kept."""


class AttachmentTooLarge(AttachmentRefused):
    """An attachment, or all of a session together, has more bytes than the limit."""


class AttachmentUntyped(AttachmentRefused):
    """An attachment is no image, PDF or text."""


class WorkspaceMissing(UsageError):
    """The workspace is not a folder."""

    kind = "RootNotAllowed"


class ToolSetInvalid(UsageError):
    """The set of tools is empty or names an unknown tool or preset."""


class BudgetRefused(UsageError):
    """A budget is wider than the settings give; the one in force stays."""

    kind = "PermissionDenied"


class ExtensionBroken(UsageError):
    """An extension cannot be loaded, or does what extensions cannot; others go on."""


class Unsupported(ExtensionBroken):
    """An editor client cannot show or do the request of an extension."""


class PriceUnknown(UsageError):
    """A run has a budget of money, and nobody knows what its model costs."""

    kind = "BudgetExceeded"


class SessionError(TillerError):
    """A session cannot do what was asked of it now."""


class CommandRefused(SessionError):
    """An extension does not want the user's own command to run; it did not."""

    kind = "PermissionDenied"


class SwitchRefused(SessionError):
    """An extension wants a window to stay with its session."""

    kind = "PermissionDenied"


class SessionBusy(SessionError):
    """A run is going on and the caller did not choose how to deliver its words."""

    kind = "SessionBusy"
    retryable = True


class SessionClosed(SessionError):
    """The session was closed."""

    kind = "SessionNotFound"


class SessionNotFound(SessionError):
    """No session of that id, or it cannot be told which one is meant."""

    kind = "SessionNotFound"


class SessionLocked(SessionError):
    """Another living process writes this session; it can be read all the same."""

    kind = "SessionBusy"
    retryable = True

    def __init__(self, message: str, *, session: SessionId | None = None) -> None:
        super().__init__(message)
        self.session = session
        """Which one, where whoever met the lock knows."""


class RunMismatch(SessionError):
    """The caller expected another run than the one going on."""

    kind = "RunMismatch"


class QueueStale(RunMismatch):
    """The caller expected other words to wait than do; nothing was changed."""


class RunNotActive(SessionError):
    """Nothing is running, and the caller asked for that to be an error."""

    kind = "RunNotActive"


class TooManyDenials(SessionError):
    """People or rules refused the run so often that going on makes no sense."""

    kind = "TooManyDenials"


class CallsRepeated(SessionError):
    """The run was ended because the model repeated the same tool calls with the same results."""

    kind = "CallsRepeated"


class BudgetExceeded(SessionError):
    """A run used up the money, tokens, turns or minutes that it was given."""

    kind = "BudgetExceeded"


class QueueFull(SessionError):
    """Too many words wait already; none of these were taken."""

    kind = "QueueFull"

    def __init__(self, message: str, *, passes: bool = True) -> None:
        super().__init__(message)
        self.passes = passes
        """Whether there is room again by waiting: nothing is taken from a queue that is paused."""


class EntryUnknown(SessionError):
    """The session has no entry of that id."""

    kind = "UnsupportedCapability"


class ForkRefused(SessionError):
    """A new session cannot be made from that entry, or there is nothing to make one from."""

    kind = "UnsupportedCapability"


class ContextStale(SessionError):
    """An extension was reloaded or its session is closed; the objects that it holds from before are invalid."""

    kind = "SessionNotFound"


class CheckpointUnknown(SessionError):
    """The session has no checkpoint of that id."""

    kind = "UnsupportedCapability"


class CheckpointConflict(SessionError):
    """Nothing could be taken back; the text says what stands against it."""

    kind = "CheckpointConflict"


class StorageError(TillerError):
    """The session's file cannot be read or written."""


class StorageUnavailable(StorageError):
    """The disk is full, read-only or gone: nothing of this write is on it; it may work later."""

    retryable = True


class SessionDamaged(StorageError):
    """The file is not a session, or its header cannot be read."""


class IndexUnavailable(StorageError):
    """There can be no index of the sessions here: the system's SQLite lacks full-text search."""


class WorkspaceError(TillerError):
    """A file or process of the workspace cannot be used; the text tells the model how to go on."""


class PathRefused(WorkspaceError):
    """The path leads outside the allowed roots."""

    kind = "RootNotAllowed"


class FileMissing(WorkspaceError):
    """Nothing is at that path."""


class NotAFile(WorkspaceError):
    """The path is a folder or a device."""


class NotAFolder(WorkspaceError):
    """The path is a file or a device, where a folder was meant."""


class FileTooLarge(WorkspaceError):
    """The file is larger than the caller wants to hold in memory."""


class NotText(WorkspaceError):
    """The content is binary, or in an encoding that cannot be told."""


class AccessRefused(WorkspaceError):
    """The operating system refuses the access."""


class ProcessGone(WorkspaceError):
    """A program that is spoken with does not read its input any more."""


class WorkspaceUnreachable(WorkspaceError):
    """The machine or container of the workspace does not answer; the next call connects again."""


class StaleText(WorkspaceError):
    """The text changed since it was read; nothing was written."""

    kind = "StaleDocument"


class EditConflicted(StaleText):
    """The same lines changed since the text was read. Nothing was written; the message has the current text."""


class EditRefused(WorkspaceError):
    """The editor did not take the edit; its text is as it was."""

    kind = "EditRefused"


class DocumentContention(EditRefused):
    """Two editors have unsaved text of the same file: whichever took the edit, the other would undo it."""

    kind = "DocumentContention"


class EditDeferred(EditRefused):
    """No editor could take the edit; nothing was written, and it is kept as a proposal for the user."""


class EditUnverified(WorkspaceError):
    """It cannot be told whether the edit landed; the file must be read again first."""

    kind = "EditUnverified"


class ToolError(TillerError):
    """A tool call failed; the text is the result that the model gets."""


class ArgumentsInvalid(ToolError):
    """The arguments of a tool call do not fit its schema."""


class ProviderError(TillerError):
    """A model call failed.

    The text never holds a secret: adapters mask what they sent.
    """

    kind = "ModelError"

    def __init__(
        self,
        message: str,
        *,
        reason: ProviderErrorKind,
        provider: str,
        status: int | None = None,
        retry_after_s: float | None = None,
        before_first_byte: bool = False,
    ) -> None:
        super().__init__(message)
        self.reason: ProviderErrorKind = reason
        self.provider = provider
        self.status = status
        self.retry_after_s = retry_after_s
        self.before_first_byte = before_first_byte
        """True when no part of an answer had come: the request may be sent again unseen."""

    @property
    def wire_kind(self) -> str:
        """The kind that front ends pass on."""
        match self.reason:
            case "auth":
                return "AuthRequired"
            case "rate_limit" | "quota":
                return "RateLimited"
            case "context_overflow":
                return "ContextOverflow"
            case _:
                return "ModelError"
