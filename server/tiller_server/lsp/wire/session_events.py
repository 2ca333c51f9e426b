"""The events of a session that are not of a run's making: state, choices, dialogs, notices."""

from typing import Literal

from tiller_server.lsp.wire.base import FailFastList, Seq, UncheckedJsonObject, Vendor
from tiller_server.lsp.wire.changes import Checkpoint
from tiller_server.lsp.wire.errors import RunError
from tiller_server.lsp.wire.event_base import EventBase, SessionEvent
from tiller_server.lsp.wire.permissions import FolderTrust, PermissionRequest, Question, Rule
from tiller_server.lsp.wire.session import (
    Attendant,
    QueueItem,
    Root,
    SessionConfig,
    SessionState,
    Thinking,
    Usage,
)

__all__ = [
    "BashEnded",
    "BashOutput",
    "BashStarted",
    "CheckpointCreated",
    "CheckpointRestored",
    "EntryLabelled",
    "ErrorRaised",
    "ExtensionErrorRaised",
    "LeafMoved",
    "ModelChanged",
    "NoticeGiven",
    "PermissionRequested",
    "PermissionResolved",
    "QuestionRequested",
    "QuestionResolved",
    "QueueChanged",
    "SessionClientsChanged",
    "SessionConfigChanged",
    "SessionRootsChanged",
    "SessionStateChanged",
    "SessionTitleChanged",
    "SessionTrustChanged",
    "SessionUsageChanged",
    "UiEvent",
]


class SessionStateChanged(SessionEvent):
    """State of the session."""

    type: Literal["session.state"] = "session.state"
    state: SessionState


class SessionConfigChanged(SessionEvent):
    """Configuration in force."""

    type: Literal["session.config"] = "session.config"
    config: SessionConfig


class SessionRootsChanged(EventBase):
    """Folders of the workspace."""

    type: Literal["session.roots"] = "session.roots"
    roots: FailFastList[Root]


class SessionUsageChanged(SessionEvent):
    """Usage of the session."""

    type: Literal["session.usage"] = "session.usage"
    usage: Usage


class SessionTitleChanged(EventBase):
    """Title; null removes it."""

    type: Literal["session.title"] = "session.title"
    title: str | None


class SessionClientsChanged(EventBase):
    """Attached clients."""

    type: Literal["session.clients"] = "session.clients"
    clients: FailFastList[Attendant]


class SessionTrustChanged(EventBase):
    """Which folders the user trusts."""

    type: Literal["session.trust"] = "session.trust"
    items: FailFastList[FolderTrust]


class QueueChanged(SessionEvent):
    """Prompts were queued, delivered, returned or dropped. Images that the model is not sent pause the queue, with a `notice`."""

    type: Literal["queue.changed"] = "queue.changed"
    queue: FailFastList[QueueItem]
    paused: bool | None = None
    """The queue waits for the next prompt or `sendNow`."""


class PermissionRequested(SessionEvent):
    """The user is asked for a permission."""

    type: Literal["permission.requested"] = "permission.requested"
    request: PermissionRequest


class PermissionResolved(SessionEvent):
    """A permission request is answered; the rule that follows from the answer is in force."""

    type: Literal["permission.resolved"] = "permission.resolved"
    request: str
    option: str | None
    """Id of the option; null: none."""
    by: str
    """Client that answered, or `timeout`, `cancelled`, `restart`."""
    rule: Rule | None = None


class QuestionRequested(SessionEvent):
    """The user is asked a question."""

    type: Literal["question.requested"] = "question.requested"
    request: Question


class QuestionResolved(SessionEvent):
    """A question is answered or withdrawn."""

    type: Literal["question.resolved"] = "question.resolved"
    request: str
    option: str | None = None
    by: str
    """Client that answered, or `timeout`, `cancelled`, `unshown`, `restart`."""
    answers: UncheckedJsonObject | None = None
    """Answers by line id; left out: none."""


class CheckpointCreated(SessionEvent):
    """A checkpoint was made."""

    type: Literal["checkpoint.created"] = "checkpoint.created"
    checkpoint: Checkpoint


class CheckpointRestored(SessionEvent):
    """A checkpoint was restored."""

    type: Literal["checkpoint.restored"] = "checkpoint.restored"
    checkpoint: Checkpoint


class ModelChanged(EventBase):
    """Another model or thinking level is in force from the next request."""

    type: Literal["model.changed"] = "model.changed"
    model: str | None
    thinking: Thinking
    source: Literal["set", "cycle", "restore"] | Vendor


class LeafMoved(EventBase):
    """The conversation continues from another entry of the tree."""

    type: Literal["leaf.moved"] = "leaf.moved"
    leaf: str | None
    from_: str | None
    """Entry that was left; not an event number."""


class EntryLabelled(EventBase):
    """Label of an entry; null removes it."""

    type: Literal["entry.labelled"] = "entry.labelled"
    entry: str
    label: str | None


class BashStarted(EventBase):
    """A command of the user begins."""

    type: Literal["bash.started"] = "bash.started"
    command: str


class BashOutput(EventBase):
    """More output of the user's command."""

    type: Literal["bash.output"] = "bash.output"
    from_: Seq | None = None
    text: str


class BashEnded(EventBase):
    """The user's command ended."""

    type: Literal["bash.ended"] = "bash.ended"
    exit_code: int | None
    output: str | None = None
    cancelled: bool | None = None
    truncated: bool | None = None
    full_output: str | None = None


class NoticeGiven(SessionEvent):
    """Message for the user; nothing failed."""

    type: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"] | Vendor
    text: str


class ErrorRaised(SessionEvent):
    """Error that ends no run."""

    type: Literal["error"] = "error"
    error: RunError


class ExtensionErrorRaised(SessionEvent):
    """An extension failed or took too long; the run continues without it."""

    type: Literal["extension.error"] = "extension.error"
    extension: str
    event: str
    error: str
    stack: str | None = None
    """Stack in the extension's code."""


class UiEvent(SessionEvent):
    """Dialog or view of an extension."""

    type: Literal[
        "ui.select",
        "ui.confirm",
        "ui.input",
        "ui.editor",
        "ui.notify",
        "ui.status",
        "ui.widget",
        "ui.title",
        "ui.editorText",
    ]
    request: str | None = None
    """Dialog that `agent/question/respond` answers."""
    extension: str | None = None
    view: UncheckedJsonObject
