"""Methods on what there is to choose from: models, commands, tools, resources, accounts, and the daemon itself."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    FailFastList,
    NonNegativeNumber,
    SafeCount,
    SessionParams,
    Timestamp,
    UncheckedJsonObject,
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
    """List the models."""

    scope: Literal["all", "usable", "scoped"] | Vendor | None = None
    """`usable` (default): models that can be asked; `scoped`: models to cycle through; `all`: every known model."""


class ModelPrices(WireModel):
    """Prices in US dollars per million tokens."""

    in_: NonNegativeNumber
    out: NonNegativeNumber
    cache_read: NonNegativeNumber | None = None
    cache_write: NonNegativeNumber | None = None


class ModelEntry(WireModel):
    """Model."""

    model: str
    """`provider/id`."""
    name: str
    provider: str
    context_window: SafeCount
    """Tokens."""
    max_tokens: SafeCount | None = None
    """Most tokens of an answer."""
    prices: ModelPrices | None = None
    """Left out: unknown."""
    thinking: FailFastList[Thinking]
    """Thinking levels of the model."""
    images: bool | None = None
    """Whether the model is sent images."""
    auth: AuthState
    """Whether the provider has a key."""


class ModelListResult(WireModel):
    """Models, and the model in force."""

    models: FailFastList[ModelEntry]
    """The models."""
    current: str | None
    """Model in force as `provider/id`; null: none."""


class ModelCycleParams(SessionParams):
    """Choose the next or previous of the scoped models."""

    direction: Literal[1, -1]
    """1: next; -1: previous."""


class ModelChoice(WireModel):
    """Model in force."""

    model: str | None
    """`provider/id`; null: there is no other model to cycle to."""
    thinking: Thinking
    """Thinking level in force."""


class ThinkingCycleParams(SessionParams):
    """Choose the next thinking level of the model in force."""


class ThinkingCycleResult(WireModel):
    """Thinking level in force."""

    level: Thinking | None
    """Level in force; null: the model has no other level."""


class CommandListParams(SessionParams):
    """List the slash commands."""


class Command(WireModel):
    """Command of an extension, prompt template or skill."""

    name: str
    """Name without the slash; a skill is `skill:<name>`."""
    description: str | None = None
    source: Literal["extension", "prompt", "skill", "builtin"] | Vendor
    argument_hint: str | None = None
    """Hint for the arguments."""


class CommandListResult(WireModel):
    """Commands."""

    commands: FailFastList[Command]
    """The commands; of two with one name the first."""


class CommandCompleteParams(SessionParams):
    """Complete the arguments of a slash command."""

    name: str
    """Name of the command, without the slash."""
    prefix: str
    """Arguments written so far."""


class CommandCompletion(WireModel):
    """Completion."""

    value: str
    """Text to insert."""
    label: str | None = None
    """Text to show instead of `value`."""
    description: str | None = None


class CommandCompleteResult(WireModel):
    """Completions."""

    completions: FailFastList[CommandCompletion]
    """Empty: the command completes nothing, or there is no such command."""


class ResourcesReloadParams(SessionParams):
    """Read settings, extensions, skills, templates and context files again."""


class LoadedResource(WireModel):
    """Resource that was read."""

    kind: Literal["context", "skill", "prompt", "extension", "systemPrompt", "settings"] | Vendor
    name: str
    uri: str | None = None
    """Left out: it is no file."""


class ResourceProblem(WireModel):
    """Resource that could not be read."""

    uri: str | None = None
    line: SafeCount | None = None
    """Line, from 1."""
    message: str
    level: Literal["warning", "error"] | Vendor


class ResourcesReloadResult(WireModel):
    """Resources that were read, and problems."""

    loaded: FailFastList[LoadedResource]
    """Resources that were read."""
    problems: FailFastList[ResourceProblem]
    """Resources that could not be read."""


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
