"""Methods on sessions: open, list, read, configure, branch, name, export, count."""

from typing import Literal

from tiller_server.lsp.wire.base import Count, Many, Moment, SessionParams, Uint, Vendor, WireModel
from tiller_server.lsp.wire.session import (
    ConfigChange,
    ContextUse,
    Cost,
    Item,
    SessionConfig,
    SessionInfo,
    TokenUse,
)

__all__ = [
    "ConfigureParams",
    "ConfigureResult",
    "Empty",
    "ForkedSession",
    "OutputRange",
    "SessionCloseParams",
    "SessionDeleteParams",
    "SessionExportParams",
    "SessionExportResult",
    "SessionForkParams",
    "SessionLabelParams",
    "SessionListParams",
    "SessionListResult",
    "SessionNavigateParams",
    "SessionNavigateResult",
    "SessionOpenParams",
    "SessionReadParams",
    "SessionReadResult",
    "SessionRenameParams",
    "SessionStatsParams",
    "SessionStatsResult",
    "SessionTreeParams",
    "SessionTreeResult",
    "ToolCallCount",
    "TreeNode",
]


class Empty(WireModel):
    """Nothing to say but yes."""


class SessionOpenParams(WireModel):
    """Opens a session by id, the latest one (`latest`) or a fresh one (`new`)."""

    session: str | None = None
    folders: Many[str] | None = None
    config: ConfigChange | None = None
    title: str | None = None


class SessionListParams(WireModel):
    """Lists stored sessions, newest first."""

    folder: str | None = None
    query: str | None = None
    cursor: str | None = None
    limit: Uint | None = None


class SessionListResult(WireModel):
    """One page of sessions."""

    sessions: Many[SessionInfo]
    next: str | None = None


class OutputRange(WireModel):
    """A part of a big output, in characters, end exclusive."""

    start: Count
    end: Count


class SessionReadParams(SessionParams):
    """Reads what was said, without attaching; big outputs by range."""

    before: str | None = None
    after: str | None = None
    limit: Uint | None = None
    run: str | None = None
    item: str | None = None
    part: Literal["meta", "full"] | Vendor | None = None
    range: OutputRange | None = None


class SessionReadResult(WireModel):
    """One page of items."""

    items: Many[Item]
    next: str | None = None
    prev: str | None = None


class ConfigureParams(SessionParams):
    """Changes the choices of a session."""

    set: ConfigChange


class ConfigureResult(WireModel):
    """The choices in force, and from when."""

    config: SessionConfig
    effective_from: Literal["now", "nextRun"] | Vendor


class SessionForkParams(SessionParams):
    """Copies a session up to an entry into a new one."""

    at_entry: str | None = None
    title: str | None = None


class ForkedSession(SessionInfo):
    """The new session, and the text to edit when it was made before an entry."""

    editor_text: str | None = None


class SessionCloseParams(SessionParams):
    """Lets go of a session; it stays stored."""


class SessionDeleteParams(SessionParams):
    """Deletes a stored session."""


class SessionExportParams(SessionParams):
    """Writes a session out."""

    format: Literal["jsonl", "markdown", "html"] | Vendor | None = None


class SessionExportResult(WireModel):
    """The session in that format."""

    format: Literal["jsonl", "markdown", "html"] | Vendor
    content: str


class SessionTreeParams(SessionParams):
    """Asks for the tree of entries."""


class TreeNode(WireModel):
    """One entry of the tree."""

    entry: str
    parent: str | None = None
    kind: str
    preview: str
    label: str | None = None
    at: Moment


class SessionTreeResult(WireModel):
    """The tree, and the entry that the next message hangs on."""

    nodes: Many[TreeNode]
    leaf: str | None


class SessionNavigateParams(SessionParams):
    """Goes on from another entry of the tree."""

    target: str
    summarize: bool | None = None
    instructions: str | None = None
    replace_instructions: bool | None = None
    label: str | None = None


class SessionNavigateResult(WireModel):
    """Where the conversation goes on, and the text to edit when a user message was chosen."""

    leaf: str | None
    editor_text: str | None = None
    summary: str | None = None
    cancelled: bool | None = None


class SessionLabelParams(SessionParams):
    """Marks an entry of the tree, or takes the mark off with null."""

    entry: str
    label: str | None


class SessionRenameParams(SessionParams):
    """Gives a session a title."""

    title: str


class SessionStatsParams(SessionParams):
    """Asks what a session amounts to."""


class ToolCallCount(WireModel):
    """How often a tool was called."""

    name: str
    calls: Count


class SessionStatsResult(WireModel):
    """Messages, tool calls, tokens, money and context of a session."""

    messages: dict[str, Count]
    """By role."""
    tool_calls: Many[ToolCallCount]
    tokens: TokenUse
    cost: Cost | None = None
    context: ContextUse
