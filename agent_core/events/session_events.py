"""The events that belong to the session rather than to one of its runs."""

from pathlib import Path
from typing import Literal

from agent_core.events.values import (
    CheckpointInfo,
    Failure,
    SessionConfig,
    SessionState as State,
    ThinkingLevel,
    UsageReport,
)
from agent_core.kernel import EntryId, RunId
from agent_core.kernel.values import Value


class SessionStateChanged(Value, frozen=True, kw_only=True):
    """The session is idle, running, compacting or waiting."""

    state: State


class SessionConfigured(Value, frozen=True, kw_only=True):
    """Model, mode, queues or tools changed."""

    config: SessionConfig


class SessionUsage(Value, frozen=True, kw_only=True):
    """Tokens, money or context fill changed."""

    usage: UsageReport


class SessionTitle(Value, frozen=True, kw_only=True):
    """The session's title changed; None: it has none."""

    title: str | None


class ModelChanged(Value, frozen=True, kw_only=True):
    """Another model or thinking level is in force from the next request."""

    model: str
    thinking: ThinkingLevel
    source: Literal["set", "cycle", "restore"]


class LeafMoved(Value, frozen=True, kw_only=True):
    """The conversation goes on from another entry; None: from the very beginning."""

    leaf: EntryId | None
    from_: EntryId | None


class CheckpointCreated(Value, frozen=True, kw_only=True):
    """A run is about to make its first change, or files are about to be taken back."""

    run: RunId | None
    checkpoint: CheckpointInfo


class CheckpointRestored(Value, frozen=True, kw_only=True):
    """Files, the conversation or both were taken back, as far as nothing stood against it."""

    checkpoint: CheckpointInfo


class EntryLabelled(Value, frozen=True, kw_only=True):
    """An entry of the tree has a label, or with None has none any more."""

    entry: EntryId
    label: str | None


class BashStarted(Value, frozen=True, kw_only=True):
    """The user runs a command."""

    command: str


class BashOutput(Value, frozen=True, kw_only=True):
    """Output of the user's command."""

    text: str


class BashEnded(Value, frozen=True, kw_only=True):
    """The user's command is over."""

    exit_code: int | None
    """None: it was cancelled, or killed by a signal."""
    output: str
    """Its end, as it is kept."""
    cancelled: bool
    truncated: bool
    full_output: str | None
    """The file that holds all of it, when it is more than `output`."""


class Notice(Value, frozen=True, kw_only=True):
    """Something the user should know; nothing failed."""

    level: Literal["info", "warning"]
    text: str


class ErrorRaised(Value, frozen=True, kw_only=True):
    """Something failed that ends no run: an entry could not be written, a hook broke a rule."""

    run: RunId | None
    error: Failure


class ExtensionError(Value, frozen=True, kw_only=True):
    """A hook crashed or took too long; the run went on without it."""

    extension: str
    event: str
    error: str
    stack: str | None = None
    """Where in its code, as Python writes it."""


class Attendant(Value, frozen=True, kw_only=True):
    """A client that is attached to the session."""

    role: str
    name: str


class SessionClients(Value, frozen=True, kw_only=True):
    """A client came or went."""

    clients: tuple[Attendant, ...]


class WorkspaceRoot(Value, frozen=True, kw_only=True):
    """A folder of the workspace."""

    folder: Path
    name: str
    primary: bool
    trusted: bool


class SessionRoots(Value, frozen=True, kw_only=True):
    """A folder came or went, or the trust in one."""

    roots: tuple[WorkspaceRoot, ...]


class FolderTrust(Value, frozen=True, kw_only=True):
    """Whether the user trusts a folder as it is now."""

    folder: Path
    trusted: bool


class SessionTrust(Value, frozen=True, kw_only=True):
    """A workspace is trusted from the next run on, or no longer."""

    items: tuple[FolderTrust, ...]
