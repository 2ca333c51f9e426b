"""Methods on what there is to choose from: models, commands, tools, resources, accounts, and the daemon itself."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    Count,
    JsonObject,
    Many,
    Moment,
    Number,
    SessionParams,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.session import SessionState, Thinking

__all__ = [
    "AuthAccount",
    "AuthLoginParams",
    "AuthLoginResult",
    "AuthLogoutParams",
    "AuthState",
    "AuthStatusParams",
    "AuthStatusResult",
    "Command",
    "CommandCompleteParams",
    "CommandCompleteResult",
    "CommandCompletion",
    "CommandListParams",
    "CommandListResult",
    "DaemonStatus",
    "LoadedResource",
    "ModelChoice",
    "ModelCycleParams",
    "ModelEntry",
    "ModelListParams",
    "ModelListResult",
    "ModelPrices",
    "RegisteredTool",
    "ResourceProblem",
    "ResourcesReloadParams",
    "ResourcesReloadResult",
    "SessionStatus",
    "StatusParams",
    "StatusResult",
    "ThinkingCycleParams",
    "ThinkingCycleResult",
    "ToolsRegisterParams",
    "ToolsRegisterResult",
    "VersionTable",
]

AuthState = TypeAliasType("AuthState", Literal["ok", "missing", "pending", "expired"] | Vendor)
"""`pending`: a login waits for its user."""


class ModelListParams(SessionParams):
    """Lists models."""

    scope: Literal["all", "usable", "scoped"] | Vendor | None = None


class ModelPrices(WireModel):
    """Prices in US dollars for a million tokens."""

    in_: Number
    out: Number
    cache_read: Number | None = None
    cache_write: Number | None = None


class ModelEntry(WireModel):
    """A model one can choose."""

    model: str
    name: str
    provider: str
    context_window: Count
    max_tokens: Count | None = None
    prices: ModelPrices | None = None
    thinking: Many[Thinking]
    images: bool | None = None
    auth: AuthState


class ModelListResult(WireModel):
    """The models, and the one in force."""

    models: Many[ModelEntry]
    current: str | None


class ModelCycleParams(SessionParams):
    """Takes the next or the previous model of the scoped ones."""

    direction: Literal[1, -1]


class ModelChoice(WireModel):
    """The choice in force; null when there is only one."""

    model: str | None
    thinking: Thinking


class ThinkingCycleParams(SessionParams):
    """Takes the next thinking level that the model has."""


class ThinkingCycleResult(WireModel):
    """The level in force; null when the model does not think."""

    level: Thinking | None


class CommandListParams(SessionParams):
    """Lists what can be written after a slash."""


class Command(WireModel):
    """A command of an extension, a prompt template or a skill."""

    name: str
    description: str | None = None
    source: Literal["extension", "prompt", "skill", "builtin"] | Vendor
    argument_hint: str | None = None


class CommandListResult(WireModel):
    """The commands."""

    commands: Many[Command]


class CommandCompleteParams(SessionParams):
    """Completes the argument of a command."""

    name: str
    prefix: str


class CommandCompletion(WireModel):
    """One way to go on."""

    value: str
    label: str | None = None
    description: str | None = None


class CommandCompleteResult(WireModel):
    """The ways to go on."""

    completions: Many[CommandCompletion]


class ResourcesReloadParams(SessionParams):
    """Reads context files, skills, templates and extensions again."""


class LoadedResource(WireModel):
    """Something that was read."""

    kind: Literal["context", "skill", "prompt", "extension", "systemPrompt", "settings"] | Vendor
    name: str
    uri: str | None = None


class ResourceProblem(WireModel):
    """Something that could not be read."""

    uri: str | None = None
    line: Count | None = None
    message: str
    level: Literal["warning", "error"] | Vendor


class ResourcesReloadResult(WireModel):
    """What was read, and what could not be."""

    loaded: Many[LoadedResource]
    problems: Many[ResourceProblem]


class RegisteredTool(WireModel):
    """A tool that the client brings."""

    name: Annotated[str, Field(min_length=1)]
    description: str
    input_schema: JsonObject
    annotations: JsonObject | None = None


class ToolsRegisterParams(SessionParams):
    """Brings tools of the client."""

    tools: Many[RegisteredTool]


class ToolsRegisterResult(WireModel):
    """The names under which they are known."""

    registered: Many[str]


class AuthStatusParams(WireModel):
    """Asks which providers are usable."""

    provider: str | None = None


class AuthAccount(WireModel):
    """A provider and whether it has a key; never the key."""

    provider: str
    state: AuthState
    name: str | None = None
    login: Literal["key", "browser", "code"] | Vendor | None = None
    """What the user needs to get in: a key, a browser on the daemon's machine, or one anywhere and a code."""
    source: str | None = None
    """Where the key comes from: the name of a variable, `keyring`, `auth.json`."""


class AuthStatusResult(WireModel):
    """The providers."""

    providers: Many[AuthAccount]


class AuthLoginParams(WireModel):
    """Begins to sign in."""

    provider: str | None = None


class AuthLoginResult(WireModel):
    """What the user must do: open the address and enter the code."""

    state: Literal["pending", "ok"] | Vendor
    url: str | None = None
    user_code: str | None = None
    expires: Moment | None = None


class AuthLogoutParams(WireModel):
    """Forgets a key."""

    provider: str | None = None


class StatusParams(WireModel):
    """Asks how the daemon is."""


class DaemonStatus(WireModel):
    """The process that serves."""

    pid: Count
    started_at: Moment
    durable: bool
    """Whether it outlives the editor."""


class SessionStatus(WireModel):
    """A session that is loaded."""

    session: str
    workspace: str
    state: SessionState
    clients: Count


class VersionTable(WireModel):
    """What speaks here."""

    server: str
    protocol: str
    python: str | None = None


class StatusResult(WireModel):
    """The daemon, its sessions, accounts, versions, and the editor quirks in force."""

    daemon: DaemonStatus
    sessions: Many[SessionStatus]
    auth: Many[AuthAccount]
    versions: VersionTable
    quirks: Many[str]
