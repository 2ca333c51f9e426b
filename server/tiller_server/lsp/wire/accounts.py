"""Methods on the server itself: tools of clients, accounts of providers, the state of the process."""

from typing import Annotated, Final, Literal

from pydantic import Field

from tiller_server.lsp.wire.base import (
    FailFastList,
    SafeCount,
    SessionParams,
    Timestamp,
    UncheckedJsonObject,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.catalogue import AuthState
from tiller_server.lsp.wire.method import request
from tiller_server.lsp.wire.session import SessionState

__all__ = [
    "AUTH_LOGIN",
    "AUTH_LOGOUT",
    "AUTH_STATUS",
    "COSTS",
    "SERVED",
    "STATUS",
    "TOOLS_REGISTER",
    "AuthAccount",
    "AuthLoginParams",
    "AuthLoginResult",
    "AuthLogoutParams",
    "AuthStatusParams",
    "AuthStatusResult",
    "CostSums",
    "CostsParams",
    "CostsResult",
    "DaemonStatus",
    "RegisteredTool",
    "SessionStatus",
    "StatusParams",
    "StatusResult",
    "ToolsRegisterParams",
    "ToolsRegisterResult",
    "VersionTable",
]


class RegisteredTool(WireModel):
    """Tool of the client."""

    name: Annotated[str, Field(min_length=1)]
    description: str
    input_schema: UncheckedJsonObject
    """JSON Schema of the arguments."""
    annotations: UncheckedJsonObject | None = None


class ToolsRegisterParams(SessionParams):
    """Register tools of the client."""

    tools: FailFastList[RegisteredTool]
    """The tools."""


class ToolsRegisterResult(WireModel):
    """Names of the registered tools."""

    registered: FailFastList[str]
    """Names under which the tools are known."""


class AuthStatusParams(WireModel):
    """Return the providers and whether each has a key."""

    provider: str | None = None
    """Only this provider; left out: all."""


class AuthAccount(WireModel):
    """Provider and whether it has a key; never the key."""

    provider: str
    state: AuthState
    """`pending`: a login waits for its user."""
    name: str | None = None
    """Name for people."""
    login: Literal["key", "browser", "code"] | Vendor | None = None
    """How the user signs in: a key, a browser on the daemon's machine, or a browser anywhere and a code."""
    source: str | None = None
    """Where the key comes from: the name of a variable, `keyring`, `auth.json`."""


class AuthStatusResult(WireModel):
    """Providers."""

    providers: FailFastList[AuthAccount]
    """The providers."""


class AuthLoginParams(WireModel):
    """Begin to sign in to a provider with a browser."""

    provider: str | None = None
    """Provider id."""


class AuthLoginResult(WireModel):
    """Page that the user must open, and the code to enter there."""

    state: Literal["pending", "ok"] | Vendor
    """`ok`: nothing is to be done."""
    url: str | None = None
    """Page to open."""
    user_code: str | None = None
    """Code to enter on the page, if it asks for one."""
    expires: Timestamp | None = None
    """When the login is given up."""


class AuthLogoutParams(WireModel):
    """Delete the stored credentials of a provider."""

    provider: str | None = None
    """Provider id."""


class StatusParams(WireModel):
    """Return the state of the server."""


class DaemonStatus(WireModel):
    """Process that serves."""

    pid: SafeCount
    started_at: Timestamp
    durable: bool
    """Whether it outlives the connection."""


class SessionStatus(WireModel):
    """Loaded session."""

    session: str
    workspace: str
    """Folder, as a URI."""
    state: SessionState
    clients: SafeCount
    """Attached connections."""


class VersionTable(WireModel):
    """Versions."""

    server: str
    protocol: str
    python: str | None = None


class StatusResult(WireModel):
    """Process, loaded sessions, accounts, versions, and the editor quirks in force."""

    daemon: DaemonStatus
    """The process that serves."""
    sessions: FailFastList[SessionStatus]
    """Loaded sessions."""
    auth: FailFastList[AuthAccount]
    """Providers."""
    versions: VersionTable
    """Versions of server, protocol and Python."""
    quirks: FailFastList[str]
    """Quirks of the editor in force, as `name=true` or `name=false`."""


class CostsParams(WireModel):
    """Return sums over the model calls of the user."""

    by: Literal["day", "model", "provider", "folder", "session", "purpose"] = "day"
    """Criterion of the groups. The tasks of a session count for it."""
    since: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    """First day, in the time zone of the server; left out: all."""
    of_session: str | None = None
    """Only calls of this session and its tasks."""


class CostSums(WireModel):
    """Sums over the calls of a group."""

    key: str
    """The day, model, provider, folder, session or purpose; empty for the total."""
    calls: SafeCount
    input: SafeCount
    output: SafeCount
    cache_read: SafeCount
    cache_write: SafeCount
    usd: str
    """Cost of the calls whose cost is known, in US dollars, as a decimal number."""
    unknown: SafeCount
    """Calls whose cost is not known."""
    at_most_usd: str
    """The most that the calls of unknown cost can have cost, without those of models that have no price."""


class CostsResult(WireModel):
    """Sums over model calls."""

    sums: FailFastList[CostSums]
    """By day: oldest first; otherwise the most expensive first."""
    total: CostSums
    """Sums over all of them."""
    problems: FailFastList[str]
    """Rows that are missing or wait, one sentence each."""


TOOLS_REGISTER: Final = request("agent/tools/register", ToolsRegisterParams, ToolsRegisterResult)
AUTH_STATUS: Final = request("agent/auth/status", AuthStatusParams, AuthStatusResult)
AUTH_LOGIN: Final = request("agent/auth/login", AuthLoginParams, AuthLoginResult)
AUTH_LOGOUT: Final = request("agent/auth/logout", AuthLogoutParams, AuthStatusResult)
STATUS: Final = request("agent/status", StatusParams, StatusResult)
COSTS: Final = request("agent/costs", CostsParams, CostsResult)
SERVED: Final = (TOOLS_REGISTER, AUTH_STATUS, AUTH_LOGIN, AUTH_LOGOUT, STATUS, COSTS)
"""Methods of this module that clients call, in the order of PROTOCOL.md."""
