"""Capabilities and options that client and server exchange in `initialize`."""

from collections.abc import Mapping
from typing import Literal

from typing_extensions import TypeAliasType

from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.wire.base import (
    FailFastList,
    Marker,
    NonNegativeNumber,
    SafeCount,
    Uint,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.session import Budgets, ClientRole, Mode

__all__ = [
    "PROTOCOL_LEVEL",
    "PROTOCOL_VERSION",
    "AgentClientCaps",
    "AgentOptions",
    "AgentServerCaps",
    "ClientName",
    "DocumentCaps",
    "EditCaps",
    "EditOptions",
    "EventCaps",
    "EventDetail",
    "FileCaps",
    "PermissionCaps",
    "PermissionOptions",
    "PlainOptions",
    "QuestionCaps",
    "ServerLimits",
    "ServerName",
    "SessionById",
    "SessionOptions",
    "UriPrefix",
    "VersionCaps",
    "merge_capabilities",
]

PROTOCOL_LEVEL = 1
"""The `v` of the handshake: clients that speak another fall back to plain LSP."""
PROTOCOL_VERSION = "1.0"

EventDetail = TypeAliasType("EventDetail", Literal["full", "normal", "status"] | Vendor)


class EventCaps(WireModel):
    """Event capabilities of the client; not read, `agent/subscribe` says what is wanted."""

    channel: Literal["progress"] | Vendor | None = None
    """Reserved; events are always sent as progress."""
    ack: Marker | None = None
    """Reserved; `ack` of `agent/subscribe` counts."""
    detail: FailFastList[EventDetail] | None = None
    """Reserved; `detail` of `agent/subscribe` counts."""


class PermissionCaps(WireModel):
    """Permission capabilities of the client; its presence declares `agent/permission`."""

    note: Marker | None = None
    """The client lets the user add a note; not read."""


class QuestionCaps(WireModel):
    """Question capabilities of the client; its presence declares `agent/question`."""

    form: Marker | None = None
    """The client shows all lines of a form at once; not read."""


class EditCaps(WireModel):
    """Edit capabilities of the client; its presence declares `agent/edit/apply`."""

    preconditions: Marker | None = None
    """The client checks `pre` before it applies the edit; not read."""
    review: FailFastList[Literal["inline", "preview"] | Vendor] | None = None
    """Ways in which the client shows an edit for review."""
    per_document_result: Marker | None = None
    """The result has an outcome for each document, so that one edit may change several."""
    save: Marker | None = None
    """The client saves documents together with the edit (`save: "ifWasClean"`)."""


class DocumentCaps(WireModel):
    """Document capabilities of the client."""

    save: Marker | None = None
    """The client answers `agent/documents/save`."""
    read: Marker | None = None
    """The client answers `agent/documents/read`."""
    dirty: Marker | None = None
    """The client reports unsaved documents; not read."""


class FileCaps(WireModel):
    """Files of a client without document sync."""

    read: Marker | None = None
    """The client answers `agent/file/read`."""
    write: Marker | None = None
    """The client answers `agent/file/write`."""


class VersionCaps(WireModel):
    """Diagnostics capabilities of the client; its presence declares `agent/diagnostics`."""

    versions: Marker | None = None
    """The client knows the document version of its diagnostics; not read."""


class AgentClientCaps(WireModel):
    """Capabilities of the client; an absent capability is not supported."""

    v: Uint = 1
    """Protocol level; 1."""
    events: EventCaps | None = None
    """Reserved; not read."""
    permission: PermissionCaps | None = None
    """The client answers `agent/permission`."""
    question: QuestionCaps | None = None
    """The client answers `agent/question`."""
    edit: EditCaps | None = None
    """The client answers `agent/edit/apply`."""
    documents: DocumentCaps | None = None
    """Saving and reading of documents."""
    files: FileCaps | None = None
    """Reading and writing of files, by clients without document sync."""
    diagnostics: VersionCaps | None = None
    """The client answers `agent/diagnostics`."""
    lsp_proxy: Marker | None = None
    """The client answers `agent/lsp/request`, which this release does not send."""
    tools: Marker | None = None
    """The client uses `agent/tools/register`, which this release does not serve."""
    diff_view: Marker | None = None
    """The client takes `agent/changes/show`."""
    notice: Marker | None = None
    """Reserved; not read."""


class ClientName(WireModel):
    """Identity of a client."""

    name: str | None = None
    """Name that other clients of the session see; left out: `clientInfo.name`."""
    version: str | None = None
    """Version of the client."""
    role: ClientRole | None = None
    """Left out: `editor`. An `observer` may not decide."""


class SessionById(WireModel):
    """Session to open, by its id."""

    id: str


class SessionOptions(WireModel):
    """Session to open, and its lifetime."""

    open: Literal["latest", "new", "none"] | Vendor | SessionById | None = None
    """Session that is opened when a request names none; `none`: only `agent/session/open` opens one. Left out: `latest`."""
    lifetime: Literal["connection", "daemon"] | Vendor | None = None
    """`connection`: the session ends with the last connection to it."""
    folder: Literal["client", "own"] | Vendor | None = None
    """Folder of a session that is opened by its id without `folders`: `own` is its own, else the first of the client."""


class EditOptions(WireModel):
    """How edits are made."""

    open_clean: Literal["auto", "buffer", "disk"] | Vendor | None = None
    """Where open documents without unsaved text are edited: `disk`, else in the editor."""
    closed: Literal["disk", "buffer"] | Vendor | None = None
    """Where files that are not open are edited. `buffer`: they are opened first, new files after they are made."""
    review: Literal["none", "hints", "inline", "preview"] | Vendor | None = None
    """`none`: changes are not shown; `hints`: as hints; `inline`, `preview`: as the client declares in `edit.review` of its capabilities."""
    save_barrier: Literal["auto", "ask", "off"] | Vendor | None = None
    """Whether the user is asked to save before a program starts."""


class PermissionOptions(WireModel):
    """How permissions are decided; never looser than the user's own settings."""

    mode: Mode | None = None
    """Permission mode; refused above the mode of the user's settings."""
    fallback: Literal["ask", "deny", "rules"] | Vendor | None = None
    """`ask` asks the user; `deny` and `rules` refuse everything that no rule allows."""
    timeout_s: NonNegativeNumber | None = None
    """Seconds until an unanswered permission request counts as refused."""


class PlainOptions(WireModel):
    """Features for clients without an extension."""

    lens: bool | None = None
    """Code lenses."""
    actions: bool | None = None
    """Code actions."""
    chat_file: str | None = None
    """Path of the chat file; left out: `.tiller/chat.md`."""
    hints: bool | None = None
    """Whether hints are shown, where `edit.review` is left out."""


class UriPrefix(WireModel):
    """Prefix of URIs of the client, and the same prefix on the server's machine."""

    client: str
    server: str


class AgentOptions(WireModel):
    """Content of `initializationOptions.agent`."""

    client_id: str | None = None
    """Stable id of the window; a window that reconnects with it gets its session again."""
    client: ClientName | None = None
    """Identity of the client."""
    session: SessionOptions | None = None
    """Session to open."""
    edit: EditOptions | None = None
    """How edits are made."""
    permission: PermissionOptions | None = None
    """How permissions are decided."""
    plain: PlainOptions | None = None
    """Features for clients without an extension."""
    budgets: Budgets | None = None
    """Budgets of each run; only tighter than those of the settings."""
    uri_map: FailFastList[UriPrefix] | None = None
    """Prefixes to exchange in URIs."""
    capabilities: AgentClientCaps | None = None
    """Client capabilities, for clients that cannot set `capabilities.experimental`."""


class ServerName(WireModel):
    """Name and version of the server."""

    name: str
    """`tiller`."""
    version: str
    """Version of the server."""


class ServerLimits(WireModel):
    """Limits of the server."""

    max_frame_bytes: SafeCount
    """Bytes of a frame."""
    max_prompt_bytes: SafeCount
    """Bytes of the content of a prompt."""
    queue: SafeCount
    """Prompts in the queue."""


class AgentServerCaps(WireModel):
    """Content of `capabilities.experimental.agent` in the result of `initialize`."""

    v: Uint
    """Protocol level."""
    protocol: str
    """Protocol version."""
    server: ServerName
    """Name and version of the server."""
    durable: Marker | None = None
    """A daemon serves: runs outlive the connection."""
    methods: FailFastList[str]
    """Client to server methods that are served."""
    events: FailFastList[str]
    """Event types that can be sent."""
    limits: ServerLimits
    """Limits."""


def merge_capabilities(
    experimental: Mapping[str, object] | None, options: Mapping[str, object] | None
) -> dict[str, object]:
    """Join what the client declared in both places; where they differ, `experimental` wins.

    Args:
        experimental: `initialize.params.capabilities.experimental.agent`.
        options: `initializationOptions.agent.capabilities`.
    """
    joined = dict(options or {})
    for key, value in (experimental or {}).items():
        above, below = as_object(value), as_object(joined.get(key))
        if above is not None and below is not None:
            joined[key] = merge_capabilities(above, below)
        else:
            joined[key] = value
    return joined
