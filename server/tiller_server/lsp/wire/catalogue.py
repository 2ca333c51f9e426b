"""Methods on models, commands and resources."""

from typing import Final, Literal

from typing_extensions import TypeAliasType

from tiller_server.lsp.wire.base import (
    FailFastList,
    NonNegativeNumber,
    SafeCount,
    SessionParams,
    Vendor,
    WireModel,
)
from tiller_server.lsp.wire.method import request
from tiller_server.lsp.wire.session import Thinking

__all__ = [
    "COMMAND_COMPLETE",
    "COMMAND_LIST",
    "MODEL_CYCLE",
    "MODEL_LIST",
    "RESOURCES_RELOAD",
    "SERVED",
    "THINKING_CYCLE",
    "AuthState",
    "Command",
    "CommandCompleteParams",
    "CommandCompleteResult",
    "CommandCompletion",
    "CommandListParams",
    "CommandListResult",
    "LoadedResource",
    "ModelChoice",
    "ModelCycleParams",
    "ModelEntry",
    "ModelListParams",
    "ModelListResult",
    "ModelPrices",
    "ResourceProblem",
    "ResourcesReloadParams",
    "ResourcesReloadResult",
    "ThinkingCycleParams",
    "ThinkingCycleResult",
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

    kind: (
        Literal["context", "skill", "prompt", "agent", "extension", "systemPrompt", "settings"]
        | Vendor
    )
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


MODEL_LIST: Final = request("agent/model/list", ModelListParams, ModelListResult)
MODEL_CYCLE: Final = request("agent/model/cycle", ModelCycleParams, ModelChoice)
THINKING_CYCLE: Final = request("agent/thinking/cycle", ThinkingCycleParams, ThinkingCycleResult)
COMMAND_LIST: Final = request("agent/command/list", CommandListParams, CommandListResult)
COMMAND_COMPLETE: Final = request(
    "agent/command/complete", CommandCompleteParams, CommandCompleteResult
)
RESOURCES_RELOAD: Final = request(
    "agent/resources/reload", ResourcesReloadParams, ResourcesReloadResult
)
SERVED: Final = (
    MODEL_LIST,
    MODEL_CYCLE,
    THINKING_CYCLE,
    COMMAND_LIST,
    COMMAND_COMPLETE,
    RESOURCES_RELOAD,
)
"""Methods of this module that clients call, in the order of PROTOCOL.md."""
