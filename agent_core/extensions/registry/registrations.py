"""Contributions of one extension, as values."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agent_core.extensions.ui.views import View
from agent_core.hooks.kinds import HookInput
from agent_core.hooks.table import AnyHook
from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage
from agent_core.providers.auth.oauth import OAuthFacts
from agent_core.providers.extension_models import ExtensionModelFactory
from agent_core.resources.slash_commands import Completion
from agent_core.tools import Tool

AnyInput = type[HookInput[Any]]  # pyright: ignore[reportExplicitAny] - of any point
FlagKind = Literal["boolean", "string"]
FlagValue = bool | str
RenderedView = View | str | None
Draw = Callable[[CustomMessage], RenderedView | Awaitable[RenderedView]]
"""Shows a message; of either colour."""


class OwnCommand(Value, frozen=True, kw_only=True):
    """Something that people call by name: `/name words`."""

    name: str
    extension: str
    description: str
    argument_hint: str
    run: Callable[[str, object], object]
    """Gets the words behind the name and a `CommandContext`; gives nothing, or what is awaited."""
    complete: Callable[[str], Sequence[Completion | str] | None] | None = None
    """Gets what is typed so far; quick, and without waiting."""


class Flag(Value, frozen=True, kw_only=True):
    """A switch that the user sets in the settings or where Tiller is started."""

    name: str
    extension: str
    description: str
    kind: FlagKind
    default: FlagValue | None


class Shortcut(Value, frozen=True, kw_only=True):
    """A key that a client may bind; the client decides whether it does."""

    key: str
    extension: str
    description: str
    run: Callable[[object], object]
    """Gets a `CommandContext`; gives nothing, or what is awaited."""


class Renderer(Value, frozen=True, kw_only=True):
    """Renderer of one type of an extension's own messages, for display in clients."""

    custom_type: str
    extension: str
    render: Draw


class Provider(Value, frozen=True, kw_only=True):
    """Models that an extension brings along, in the words of models.json."""

    name: str
    extension: str
    config: JsonObject
    oauth: OAuthFacts | None = None
    """How users log in; None: with a key."""
    adapter: ExtensionModelFactory | None = None
    """Answers in the place of a wire format."""


class Registrations(Struct, kw_only=True):
    """Everything that one extension registered, in its order."""

    extension: str
    hooks: list[tuple[AnyInput, AnyHook]] = msgspec.field(
        default_factory=list["tuple[AnyInput, AnyHook]"]
    )
    """With the class of their input."""
    tools: dict[str, Tool] = msgspec.field(default_factory=dict[str, Tool])
    commands: dict[str, OwnCommand] = msgspec.field(default_factory=dict[str, OwnCommand])
    flags: dict[str, Flag] = msgspec.field(default_factory=dict[str, Flag])
    shortcuts: dict[str, Shortcut] = msgspec.field(default_factory=dict[str, Shortcut])
    renderers: dict[str, Renderer] = msgspec.field(default_factory=dict[str, Renderer])
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])
