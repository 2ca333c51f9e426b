"""What one extension offers, as values."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Any, Literal

from agent_core.extensions.views import View
from agent_core.hooks.kinds import Input
from agent_core.hooks.table import AnyHook
from agent_core.kernel import JsonObject
from agent_core.kernel.records import dataclass
from agent_core.messages import CustomMessage
from agent_core.providers.brought import Adapter
from agent_core.providers.oauth_facts import OAuthFacts
from agent_core.resources.commands import Completion
from agent_core.tools import Tool

AnyInput = type[Input[Any]]  # pyright: ignore[reportExplicitAny] - of any point
FlagKind = Literal["boolean", "string"]
FlagValue = bool | str
Drawn = View | str | None
Draw = Callable[[CustomMessage], Drawn | Awaitable[Drawn]]
"""Shows a message; of either colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCommand:
    """Something that people call by name: `/name words`."""

    name: str
    extension: str
    description: str
    argument_hint: str
    run: Callable[[str, object], object]
    """Gets the words behind the name and a `CommandContext`; gives nothing, or what is awaited."""
    complete: Callable[[str], Sequence[Completion | str] | None] | None = None
    """Gets what is typed so far; quick, and without waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A switch that the user sets in the settings or where Tiller is started."""

    name: str
    extension: str
    description: str
    kind: FlagKind
    default: FlagValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcut:
    """A key that a client may bind; the client decides whether it does."""

    key: str
    extension: str
    description: str
    run: Callable[[object], object]
    """Gets a `CommandContext`; gives nothing, or what is awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """Says how a client shows an extension's own messages."""

    custom_type: str
    extension: str
    render: Draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Models that an extension brings along, in the words of models.json."""

    name: str
    extension: str
    config: JsonObject
    oauth: OAuthFacts | None = None
    """How users log in; None: with a key."""
    adapter: Adapter | None = None
    """Answers in the place of a wire format."""


@dataclass(slots=True, kw_only=True)
class Registered:
    """Everything that one extension registered, in its order."""

    extension: str
    hooks: list[tuple[AnyInput, AnyHook]] = field(default_factory=list["tuple[AnyInput, AnyHook]"])
    """With the class of their input."""
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    commands: dict[str, OwnCommand] = field(default_factory=dict[str, OwnCommand])
    flags: dict[str, Flag] = field(default_factory=dict[str, Flag])
    shortcuts: dict[str, Shortcut] = field(default_factory=dict[str, Shortcut])
    renderers: dict[str, Renderer] = field(default_factory=dict[str, Renderer])
    providers: dict[str, Provider] = field(default_factory=dict[str, Provider])
