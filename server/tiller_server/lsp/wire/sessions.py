"""Methods on sessions: open, list, read, configure, branch, name, export, count."""

from typing import Final, Literal

from tiller_server.lsp.wire.base import (
    FailFastList,
    SafeCount,
    SessionParams,
    Timestamp,
    Uint,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.method import request
from tiller_server.lsp.wire.session import (
    ConfigChange,
    ContextUse,
    Cost,
    Item,
    SessionConfig,
    SessionInfo,
    Snapshot,
    TokenUse,
)

__all__ = [
    "BLOB_READ",
    "BLOB_STORE",
    "SERVED",
    "SESSION_CLOSE",
    "SESSION_CONFIGURE",
    "SESSION_DELETE",
    "SESSION_EXPORT",
    "SESSION_FORK",
    "SESSION_LABEL",
    "SESSION_LIST",
    "SESSION_NAVIGATE",
    "SESSION_OPEN",
    "SESSION_READ",
    "SESSION_RENAME",
    "SESSION_STATS",
    "SESSION_TREE",
    "BlobReadParams",
    "BlobReadResult",
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
    """Empty result."""


class SessionOpenParams(WireModel):
    """Open a session and bind it to this connection."""

    session: str | None = None
    """Session id, `latest` or `new`; left out: see the order of choice."""
    folders: FailFastList[str] | None = None
    """Folder to work in, as a list of one URI; left out: the first workspace folder."""
    config: ConfigChange | None = None
    """Configuration to apply."""
    title: str | None = None
    """Title to set."""


class SessionListParams(WireModel):
    """List the stored sessions, newest first."""

    folder: str | None = None
    """Folder, as a URI; left out: the workspace."""
    scope: Literal["folder", "all"] | None = None
    """`all`: the sessions of all folders; `folder` is not read then."""
    query: str | None = None
    """Words to search in titles and messages."""
    cursor: str | None = None
    """The `next` of the page before."""
    limit: Uint | None = None
    """Sessions per page: 100, at most 1,000."""


class SessionListResult(WireModel):
    """Page of sessions."""

    sessions: FailFastList[SessionInfo]
    """Sessions."""
    next: str | None = None
    """Cursor of the next page; left out: this is the last."""


class OutputRange(WireModel):
    """Range of a text in characters, end exclusive."""

    start: SafeCount
    end: SafeCount


class SessionReadParams(SessionParams):
    """Read the items of a session, without attaching to it."""

    before: str | None = None
    """Cursor: items before this one."""
    after: str | None = None
    """Cursor: items after this one."""
    limit: Uint | None = None
    """Items per page: 100, at most 1,000."""
    run: str | None = None
    """Only items of this run."""
    item: str | None = None
    """Only this item."""
    part: Literal["meta", "full"] | Vendor | None = None
    """`full`: texts are not cut; `meta`: no texts."""
    range: OutputRange | None = None
    """With `item`: only this range of its text."""


class SessionReadResult(WireModel):
    """Page of items."""

    items: FailFastList[Item]
    """Items, oldest first."""
    next: str | None = None
    """Cursor for `after`; left out: there is no newer item."""
    prev: str | None = None
    """Cursor for `before`; left out: there is no older item."""


class ConfigureParams(SessionParams):
    """Change the configuration of a session."""

    set: ConfigChange
    """The change."""


class ConfigureResult(WireModel):
    """Configuration in force."""

    config: SessionConfig
    """Configuration in force."""
    effective_from: Literal["now", "nextRun"] | Vendor
    """`now`: from the next request to the model."""


class SessionForkParams(SessionParams):
    """Create a session from the entries before a prompt, or from the whole branch."""

    at_entry: str | None = None
    """Entry of a prompt of the user; left out: the whole branch."""
    title: str | None = None
    """Title of the new session."""


class ForkedSession(SessionInfo):
    """New session."""

    editor_text: str | None = None
    """Text of the prompt at `atEntry`, to edit and send."""


class SessionCloseParams(SessionParams):
    """End what is going on in a session and unload it; it stays stored."""


class SessionDeleteParams(SessionParams):
    """Delete a stored session."""


class SessionExportParams(SessionParams):
    """Export a session as a document."""

    format: Literal["jsonl", "markdown", "html"] | Vendor | None = None
    """`jsonl` (default), `markdown` or `html`."""


class SessionExportResult(WireModel):
    """Exported session."""

    format: Literal["jsonl", "markdown", "html"] | Vendor
    """Format."""
    content: str
    """The document."""


class SessionTreeParams(SessionParams):
    """Return the tree of entries of a session."""


class TreeNode(WireModel):
    """Entry of the tree."""

    entry: str
    parent: str | None = None
    """Left out: the entry is a root."""
    kind: str
    """Role of a message, else the type of the entry."""
    preview: str
    label: str | None = None
    at: Timestamp


class SessionTreeResult(WireModel):
    """Tree of entries."""

    nodes: FailFastList[TreeNode]
    """All entries of all branches."""
    leaf: str | None
    """Entry that the next message follows; null: none."""


class SessionNavigateParams(SessionParams):
    """Continue the conversation from another entry of the tree."""

    target: str
    """Entry id."""
    summarize: bool | None = None
    """Summarise the branch that is left."""
    instructions: str | None = None
    """Instructions for the summary."""
    replace_instructions: bool | None = None
    """True: `instructions` replace the built-in ones; else they are added."""
    label: str | None = None
    """Label to set."""


class SessionNavigateResult(WireModel):
    """New leaf."""

    leaf: str | None
    """Entry that the next message follows; null: none."""
    editor_text: str | None = None
    """Text of the prompt, when `target` is a prompt of the user."""
    summary: str | None = None
    """Summary of the branch that was left."""
    cancelled: bool | None = None
    """True: nothing has moved."""


class SessionLabelParams(SessionParams):
    """Set or remove the label of an entry."""

    entry: str
    """Entry id."""
    label: str | None
    """Label; null removes it."""


class SessionRenameParams(SessionParams):
    """Set the title of a session."""

    title: str
    """Title; an empty one removes it."""


class SessionStatsParams(SessionParams):
    """Return counts of a session over all branches."""


class ToolCallCount(WireModel):
    """Calls of one tool."""

    name: str
    calls: SafeCount


class SessionStatsResult(WireModel):
    """Counts of a session."""

    messages: dict[str, SafeCount]
    """Messages by role: `user`, `assistant`, `toolResult`, `other`."""
    tool_calls: FailFastList[ToolCallCount]
    """Calls by tool."""
    tokens: TokenUse
    """Tokens."""
    cost: Cost | None = None
    """Money, when the prices are known."""
    context: ContextUse
    """Fill of the context window."""


class BlobReadParams(WireModel):
    """Read an attachment that content names by `blob`."""

    blob: str
    """SHA-256 of its bytes, in hexadecimal digits."""
    offset: SafeCount | None = None
    """First byte of the piece; left out: 0."""


class BlobReadResult(WireModel):
    """Piece of an attachment."""

    mime: str
    """Media type, as the bytes show it."""
    size: SafeCount
    """Bytes of the whole."""
    data: str
    """Base64 of the piece, at most 3 MiB of bytes. Joined, the texts of all pieces are the base64 of the whole."""
    next: SafeCount | None = None
    """Offset of the next piece; left out: this is the last one."""


class BlobStoreParams(WireModel):
    """Store a file of the server's machine or a web page as an attachment, which a prompt then names by `blob`."""

    uri: str
    """`file:` URI of a PNG, JPEG, GIF, WebP, PDF or UTF-8 text, or the `http:` or `https:` URL of a page, which is stored as Markdown."""
    size: SafeCount | None = None
    """Bytes of the file as the client sees it; not for a page. A file of another size is refused, since it is on another machine or has changed."""


class BlobStoreResult(WireModel):
    """Stored file or page."""

    blob: str
    """SHA-256 of its bytes, in hexadecimal digits."""
    mime: str
    """Media type, as the bytes show it."""
    size: SafeCount
    """In bytes."""
    name: str | None = None
    """Name for people and models: that of the file, or the last part of the page's address with its host."""


SESSION_OPEN: Final = request("agent/session/open", SessionOpenParams, Snapshot)
SESSION_LIST: Final = request("agent/session/list", SessionListParams, SessionListResult)
SESSION_READ: Final = request("agent/session/read", SessionReadParams, SessionReadResult)
SESSION_CONFIGURE: Final = request("agent/session/configure", ConfigureParams, ConfigureResult)
SESSION_FORK: Final = request("agent/session/fork", SessionForkParams, ForkedSession)
SESSION_CLOSE: Final = request("agent/session/close", SessionCloseParams, Empty)
SESSION_DELETE: Final = request("agent/session/delete", SessionDeleteParams, Empty)
SESSION_EXPORT: Final = request("agent/session/export", SessionExportParams, SessionExportResult)
SESSION_TREE: Final = request("agent/session/tree", SessionTreeParams, SessionTreeResult)
SESSION_NAVIGATE: Final = request(
    "agent/session/navigate", SessionNavigateParams, SessionNavigateResult
)
SESSION_LABEL: Final = request("agent/session/label", SessionLabelParams, Empty)
SESSION_RENAME: Final = request("agent/session/rename", SessionRenameParams, SessionInfo)
SESSION_STATS: Final = request("agent/session/stats", SessionStatsParams, SessionStatsResult)
BLOB_READ: Final = request("agent/blob/read", BlobReadParams, BlobReadResult)
BLOB_STORE: Final = request("agent/blob/store", BlobStoreParams, BlobStoreResult)
SERVED: Final = (
    SESSION_OPEN,
    SESSION_LIST,
    SESSION_READ,
    SESSION_CONFIGURE,
    SESSION_FORK,
    SESSION_CLOSE,
    SESSION_DELETE,
    SESSION_EXPORT,
    SESSION_TREE,
    SESSION_NAVIGATE,
    SESSION_LABEL,
    SESSION_RENAME,
    SESSION_STATS,
    BLOB_READ,
    BLOB_STORE,
)
"""Methods of this module that clients call, in the order of PROTOCOL.md."""
