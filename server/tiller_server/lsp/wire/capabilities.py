"""What client and server tell one another when they meet."""

from typing import Literal

from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    Count,
    JsonObject,
    Many,
    Marker,
    Number,
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
    """How the client takes events."""

    channel: Literal["progress"] | Vendor | None = None
    ack: Marker | None = None
    detail: Many[EventDetail] | None = None


class PermissionCaps(WireModel):
    """The client shows permission requests, with a note or without."""

    note: Marker | None = None


class QuestionCaps(WireModel):
    """The client shows questions, as a form or one by one."""

    form: Marker | None = None


class EditCaps(WireModel):
    """The client applies edits by `agent/edit/apply`."""

    preconditions: Marker | None = None
    review: Many[Literal["inline", "preview"] | Vendor] | None = None
    per_document_result: Marker | None = None
    save: Marker | None = None


class DocumentCaps(WireModel):
    """The client saves, reads and knows unsaved documents."""

    save: Marker | None = None
    read: Marker | None = None
    dirty: Marker | None = None


class VersionCaps(WireModel):
    """The client shows problems; it knows which version they belong to."""

    versions: Marker | None = None


class AgentClientCaps(WireModel):
    """What the client can do; what is left out it cannot."""

    v: Uint = 1
    events: EventCaps | None = None
    permission: PermissionCaps | None = None
    question: QuestionCaps | None = None
    edit: EditCaps | None = None
    documents: DocumentCaps | None = None
    diagnostics: VersionCaps | None = None
    lsp_proxy: Marker | None = None
    tools: Marker | None = None
    diff_view: Marker | None = None
    notice: Marker | None = None


class ClientName(WireModel):
    """Who attaches, and as what."""

    name: str | None = None
    version: str | None = None
    role: ClientRole | None = None


class SessionById(WireModel):
    """A session to open by its id."""

    id: str


class SessionOptions(WireModel):
    """Which session to open, and whether it ends with the connection."""

    open: Literal["latest", "new", "none"] | Vendor | SessionById | None = None
    lifetime: Literal["connection", "daemon"] | Vendor | None = None


class EditOptions(WireModel):
    """How edits are made."""

    open_clean: Literal["auto", "buffer", "disk"] | Vendor | None = None
    closed: Literal["disk", "buffer"] | Vendor | None = None
    """Where files that are not open are edited; `buffer`: they are opened first, new ones when they are made."""
    review: Literal["none", "hints", "inline", "preview"] | Vendor | None = None
    save_barrier: Literal["auto", "ask", "off"] | Vendor | None = None


class PermissionOptions(WireModel):
    """How permission is given; never looser than the user's own settings."""

    mode: Mode | None = None
    fallback: Literal["ask", "deny", "rules"] | Vendor | None = None
    timeout_s: Number | None = None


class PlainOptions(WireModel):
    """What a client without any extension gets."""

    lens: bool | None = None
    actions: bool | None = None
    chat_file: str | None = None
    hints: bool | None = None


class UriPrefix(WireModel):
    """How a URI of the client reads on the server's machine."""

    client: str
    server: str


class AgentOptions(WireModel):
    """`initializationOptions.agent`: everything a client may say when it starts."""

    client_id: str | None = None
    client: ClientName | None = None
    session: SessionOptions | None = None
    edit: EditOptions | None = None
    permission: PermissionOptions | None = None
    plain: PlainOptions | None = None
    budgets: Budgets | None = None
    uri_map: Many[UriPrefix] | None = None
    capabilities: AgentClientCaps | None = None


class ServerName(WireModel):
    """Who serves."""

    name: str
    version: str


class ServerLimits(WireModel):
    """How much the server takes: bytes of a frame, bytes of a prompt, prompts in the queue."""

    max_frame_bytes: Count
    max_prompt_bytes: Count
    queue: Count


class AgentServerCaps(WireModel):
    """`capabilities.experimental.agent`: what the server can do."""

    v: Uint
    protocol: str
    server: ServerName
    durable: Marker | None = None
    methods: Many[str]
    events: Many[str]
    limits: ServerLimits


def merge_capabilities(experimental: JsonObject | None, options: JsonObject | None) -> JsonObject:
    """Join what the client declared in both places; where they differ, `experimental` wins.

    Args:
        experimental: `initialize.params.capabilities.experimental.agent`.
        options: `initializationOptions.agent.capabilities`.
    """
    joined = dict(options or {})
    for key, value in (experimental or {}).items():
        below = joined.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            joined[key] = merge_capabilities(value, below)
        else:
            joined[key] = value
    return joined
