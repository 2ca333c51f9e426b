"""The events that belong to the session rather than to one of its runs."""

from pathlib import Path
from typing import Literal

from agent_core.events.values import (
    CheckpointShown,
    Failure,
    SessionConfig,
    SessionState as State,
    ThinkingLevel,
    UsageReport,
)
from agent_core.kernel import EntryId, RunId
from agent_core.kernel.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """The session is idle, running, compacting or waiting."""

    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfigured:
    """Model, mode, queues or tools changed."""

    config: SessionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUsage:
    """Tokens, money or context fill changed."""

    usage: UsageReport


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTitle:
    """The session's title changed; None: it has none."""

    title: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChanged:
    """Another model or thinking level is in force from the next request."""

    model: str
    thinking: ThinkingLevel
    source: Literal["set", "cycle", "restore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafMoved:
    """The conversation goes on from another entry; None: from the very beginning."""

    leaf: EntryId | None
    from_: EntryId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCreated:
    """A run is about to make its first change, or files are about to be taken back."""

    run: RunId | None
    checkpoint: CheckpointShown


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRestored:
    """Files, the conversation or both were taken back, as far as nothing stood against it."""

    checkpoint: CheckpointShown


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLabelled:
    """An entry of the tree has a label, or with None has none any more."""

    entry: EntryId
    label: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BashStarted:
    """The user runs a command."""

    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BashOutput:
    """What the user's command prints."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BashEnded:
    """The user's command is over."""

    exit_code: int | None
    """None: it was cancelled, or killed by a signal."""
    output: str
    """Its end, as it is kept."""
    cancelled: bool
    truncated: bool
    full_output: str | None
    """The file that holds all of it, when it is more than `output`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something the user should know; nothing failed."""

    level: Literal["info", "warning"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRaised:
    """Something failed that ends no run: an entry could not be written, a hook broke a rule."""

    run: RunId | None
    error: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionError:
    """A hook crashed or took too long; the run went on without it."""

    extension: str
    event: str
    error: str
    stack: str | None = None
    """Where in its code, as Python writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attendant:
    """A client that is attached to the session."""

    role: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClients:
    """A client came or went."""

    clients: tuple[Attendant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceRoot:
    """A folder of the workspace."""

    folder: Path
    name: str
    primary: bool
    trusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRoots:
    """A folder came or went, or the trust in one."""

    roots: tuple[WorkspaceRoot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTrust:
    """Whether the user trusts a folder as it is now."""

    folder: Path
    trusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTrust:
    """A workspace is trusted from the next run on, or no longer."""

    items: tuple[FolderTrust, ...]
