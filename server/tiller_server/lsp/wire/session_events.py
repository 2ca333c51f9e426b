"""The events of a session that are not of a run's making: state, choices, dialogs, notices."""

from typing import Literal

from tiller_server.lsp.wire.base import JsonObject, Many, Seq, Vendor
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
    """The session is idle, runs, compacts or waits."""

    type: Literal["session.state"] = "session.state"
    state: SessionState


class SessionConfigChanged(SessionEvent):
    """The choices in force."""

    type: Literal["session.config"] = "session.config"
    config: SessionConfig


class SessionRootsChanged(EventBase):
    """The folders of the workspace."""

    type: Literal["session.roots"] = "session.roots"
    roots: Many[Root]


class SessionUsageChanged(SessionEvent):
    """Tokens, money or how full the window is."""

    type: Literal["session.usage"] = "session.usage"
    usage: Usage


class SessionTitleChanged(EventBase):
    """The title; null takes it away."""

    type: Literal["session.title"] = "session.title"
    title: str | None


class SessionClientsChanged(EventBase):
    """The clients that are attached."""

    type: Literal["session.clients"] = "session.clients"
    clients: Many[Attendant]


class SessionTrustChanged(EventBase):
    """The folders that the user trusts."""

    type: Literal["session.trust"] = "session.trust"
    items: Many[FolderTrust]


class QueueChanged(SessionEvent):
    """Words were queued, delivered, returned or dropped. Images that the model is not sent pause the queue, with a `notice`."""

    type: Literal["queue.changed"] = "queue.changed"
    queue: Many[QueueItem]
    paused: bool | None = None
    """The queue waits for the next prompt."""


class PermissionRequested(SessionEvent):
    """The user is asked whether something may be done."""

    type: Literal["permission.requested"] = "permission.requested"
    request: PermissionRequest


class PermissionResolved(SessionEvent):
    """A permission request is answered; the rule that came of it is in force."""

    type: Literal["permission.resolved"] = "permission.resolved"
    request: str
    option: str | None
    by: str
    rule: Rule | None = None


class QuestionRequested(SessionEvent):
    """The user is asked what is meant."""

    type: Literal["question.requested"] = "question.requested"
    request: Question


class QuestionResolved(SessionEvent):
    """A question is answered or withdrawn."""

    type: Literal["question.resolved"] = "question.resolved"
    request: str
    option: str | None = None
    by: str
    answers: JsonObject | None = None
    """By the id of the question; left out, there are none."""


class CheckpointCreated(SessionEvent):
    """A state of the files that can be gone back to."""

    type: Literal["checkpoint.created"] = "checkpoint.created"
    checkpoint: Checkpoint


class CheckpointRestored(SessionEvent):
    """The files are as they were then."""

    type: Literal["checkpoint.restored"] = "checkpoint.restored"
    checkpoint: Checkpoint


class ModelChanged(EventBase):
    """Another model or thinking level is in force from the next request."""

    type: Literal["model.changed"] = "model.changed"
    model: str | None
    thinking: Thinking
    source: Literal["set", "cycle", "restore"] | Vendor


class LeafMoved(EventBase):
    """The conversation goes on from another entry of the tree."""

    type: Literal["leaf.moved"] = "leaf.moved"
    leaf: str | None
    from_: str | None


class EntryLabelled(EventBase):
    """An entry of the tree has a label; null takes it off."""

    type: Literal["entry.labelled"] = "entry.labelled"
    entry: str
    label: str | None


class BashStarted(EventBase):
    """The user runs a command."""

    type: Literal["bash.started"] = "bash.started"
    command: str


class BashOutput(EventBase):
    """What the user's command prints."""

    type: Literal["bash.output"] = "bash.output"
    from_: Seq | None = None
    text: str


class BashEnded(EventBase):
    """The user's command is over."""

    type: Literal["bash.ended"] = "bash.ended"
    exit_code: int | None
    output: str | None = None
    cancelled: bool | None = None
    truncated: bool | None = None
    full_output: str | None = None


class NoticeGiven(SessionEvent):
    """Something the user should know; nothing failed."""

    type: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"] | Vendor
    text: str


class ErrorRaised(SessionEvent):
    """Something failed that ends no run."""

    type: Literal["error"] = "error"
    error: RunError


class ExtensionErrorRaised(SessionEvent):
    """An extension crashed or took too long; the run went on without it."""

    type: Literal["extension.error"] = "extension.error"
    extension: str
    event: str
    error: str
    stack: str | None = None
    """Where in its code."""


class UiEvent(SessionEvent):
    """A dialog or view that an extension opens or changes."""

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
    """Names the dialog that `agent/question/respond` answers."""
    extension: str | None = None
    view: JsonObject
