"""Registrations of extensions as values, how they are taken, and their merge over all extensions of a session."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from agent_core.extensions.actions import SessionActions
from agent_core.extensions.scope import ExtensionScope
from agent_core.extensions.ui import View
from agent_core.hooks.kinds import HookInput
from agent_core.hooks.runner import AnyHook
from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage
from agent_core.providers.auth.oauth import OAuthFacts
from agent_core.providers.catalog.models_file import ProviderShape, read_models_file
from agent_core.providers.registry import ExtensionModelFactory, ExtensionModels
from agent_core.resources.load_result import LoadProblem
from agent_core.resources.offers import Completion
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


HandlerFunction = TypeVar("HandlerFunction", bound=Callable[..., object])


class Registrar(SessionActions):
    """Registers flags, keys, ways to show messages, and models."""

    def __init__(
        self,
        scope: ExtensionScope,
        registered: Registrations,
        *,
        flags: Callable[[str], FlagValue | None],
        changed: Callable[[], None],
    ) -> None:
        """Create a registrar without registrations.

        Args:
            scope: One loading of the extension.
            registered: Where everything is put.
            flags: Gives what the user set of a flag.
            changed: Told when something was registered.
        """
        super().__init__(scope)
        self._registered = registered
        self._flags = flags
        self._changed = changed

    @property
    def name(self) -> str:
        """The name of the extension."""
        return self._scope.extension

    def flag(
        self,
        name: str,
        *,
        kind: FlagKind = "boolean",
        default: FlagValue | None = None,
        description: str = "",
    ) -> None:
        """Have a switch that users set; `get_flag` reads it."""
        self._scope.life.check()
        self._registered.flags[name] = Flag(
            name=name, extension=self.name, description=description, kind=kind, default=default
        )
        self._changed()

    def get_flag(self, name: str) -> FlagValue | None:
        """Return the user's value of a flag, else its default; None if this extension has no such flag."""
        flag = self._registered.flags.get(name)
        if flag is None:
            return None
        given = self._flags(name)
        fits = isinstance(given, bool if flag.kind == "boolean" else str)
        return given if fits else flag.default

    def shortcut(
        self, key: str, *, description: str = ""
    ) -> Callable[[HandlerFunction], HandlerFunction]:
        """Offer a key, `ctrl+shift+t` for one: the function is called with a `CommandContext` where a client binds it."""

        def take(handler: HandlerFunction) -> HandlerFunction:
            self._scope.life.check()
            self._registered.shortcuts[key.lower()] = Shortcut(
                key=key.lower(), extension=self.name, description=description, run=handler
            )
            self._changed()
            return handler

        return take

    def message_renderer(self, custom_type: str) -> Callable[[Draw], Draw]:
        """Return how this extension's messages of a type are shown: as a view that each client draws in its own way."""

        def take(render: Draw) -> Draw:
            self._scope.life.check()
            self._registered.renderers[custom_type] = Renderer(
                custom_type=custom_type, extension=self.name, render=render
            )
            self._changed()
            return render

        return take

    def provider(
        self,
        name: str,
        config: JsonObject,
        *,
        oauth: OAuthFacts | None = None,
        adapter: ExtensionModelFactory | None = None,
    ) -> None:
        """Bring models, or change those that are known, in the words of models.json, which goes before it.

        Args:
            name: The provider, as in `provider/model`.
            config: `baseUrl`, `api`, `apiKey`, `headers`, `models` …
            oauth: How users log in, `PkceFacts`, `DeviceFacts` or `LoginFunctions`; None: with a key, or as before.
            adapter: Makes models that answer by themselves; None: those of the `api`.
        """
        self._scope.life.check()
        self._registered.providers[name] = Provider(
            name=name, extension=self.name, config=config, oauth=oauth, adapter=adapter
        )
        self._changed()


Conflicts = Literal["last", "first"]
"""Which of two extensions wins a name: the one that was loaded last, or first."""


Thing = TypeVar("Thing")


class Offers(Struct, kw_only=True):
    """Everything by the name under which it is found."""

    tools: dict[str, Tool] = msgspec.field(default_factory=dict[str, Tool])
    commands: dict[str, OwnCommand] = msgspec.field(default_factory=dict[str, OwnCommand])
    flags: dict[str, Flag] = msgspec.field(default_factory=dict[str, Flag])
    shortcuts: dict[str, Shortcut] = msgspec.field(default_factory=dict[str, Shortcut])
    renderers: dict[str, Renderer] = msgspec.field(default_factory=dict[str, Renderer])
    providers: dict[str, Provider] = msgspec.field(default_factory=dict[str, Provider])
    problems: list[LoadProblem] = msgspec.field(default_factory=list[LoadProblem])


def offers_of(all_registered: Sequence[Registrations], *, conflicts: Conflicts) -> Offers:
    """Merge the registrations of extensions, in load order."""
    made = Offers()
    for one in all_registered:
        merge = _Merge(one.extension, conflicts, made.problems)
        merge.into(made.tools, one.tools, what="tool")
        merge.commands(made.commands, one.commands)
        merge.into(made.flags, one.flags, what="flag")
        keys = _free_keys(one.shortcuts, made.problems)
        merge.into(made.shortcuts, keys, what="shortcut")
        merge.into(made.renderers, one.renderers, what="message renderer")
        merge.into(made.providers, one.providers, what="provider")
    return made


RESERVED_KEYS: Final = frozenset(
    {
        *("enter", "escape", "esc", "tab", "shift+tab", "space", "backspace", "delete"),
        *("up", "down", "left", "right", "home", "end", "pageup", "pagedown"),
        # Signals and flow control of terminals, and the same bytes as Tab, Enter, Escape and Backspace.
        *("ctrl+c", "ctrl+d", "ctrl+z", "ctrl+s", "ctrl+q", "ctrl+h", "ctrl+i", "ctrl+j", "ctrl+m"),
        # Keys of `tiller chat`.
        *("ctrl+b", "ctrl+g", "ctrl+o", "ctrl+v"),
    }
)
"""Keys that terminals or the clients use themselves; an extension that registers one is told."""


def _free_keys(
    shortcuts: Mapping[str, Shortcut], problems: list[LoadProblem]
) -> Mapping[str, Shortcut]:
    """Return the keys that are not reserved; report the others."""
    for key in sorted(shortcuts.keys() & RESERVED_KEYS):
        message = (
            f"the key {key!r} of extension {shortcuts[key].extension} is reserved for the terminal and the clients, "
            "so it is not used; choose another one"
        )
        problems.append(LoadProblem(message=message))
    return {key: one for key, one in shortcuts.items() if key not in RESERVED_KEYS}


class _Merge(Struct):
    """Lays the things of one extension beside those of the ones before it."""

    _extension: str
    _conflicts: Conflicts
    _problems: list[LoadProblem]

    def into(self, there: dict[str, Thing], new: Mapping[str, Thing], *, what: str) -> None:
        """Add new entries; resolve and report name conflicts by the rule for conflicts."""
        for name, thing in new.items():
            if name not in there or self._conflicts == "last":
                if name in there:
                    self._tell(what, name, f"that of {self._extension} is used")
                there[name] = thing
            else:
                self._tell(what, name, f"that of {self._extension} is not used")

    def commands(self, there: dict[str, OwnCommand], new: Mapping[str, OwnCommand]) -> None:
        """Add commands; where the first wins, the later one can still be called, as `name:2`."""
        if self._conflicts == "last":
            self.into(there, new, what="command")
            return
        for name, command in new.items():
            called, number = name, 2
            while called in there:
                called, number = f"{name}:{number}", number + 1
            if called != name:
                self._tell("command", name, f"that of {self._extension} is called {called}")
            there[called] = command

    def _tell(self, what: str, name: str, outcome: str) -> None:
        message = f"two extensions have a {what} {name!r}; {outcome}"
        self._problems.append(LoadProblem(message=message))


OWN_ADDRESS = "extension:"
"""The address of models that an extension answers for itself."""
OWN_API = "openai-completions"
"""Named for them because every model has one; it is not spoken."""


def extension_models(
    providers: Iterable[Provider],
) -> tuple[ExtensionModels, tuple[LoadProblem, ...]]:
    """Return it, and what was wrong: a provider that is wrong is left out and the others stay."""
    shapes: dict[str, ProviderShape] = {}
    problems: list[LoadProblem] = []
    all_providers = tuple(providers)
    for one in all_providers:
        try:
            text = json.dumps({"providers": {one.name: _config(one)}})
        except (TypeError, ValueError) as error:
            problems.append(_problem(one, f"is no JSON: {error}"))
            continue
        read = read_models_file(text, path=Path(one.name))
        shapes.update(read.providers)
        problems.extend(_problem(one, str(error)) for error in read.problems)
    brought = ExtensionModels(
        shapes=shapes,
        oauth={one.name: one.oauth for one in all_providers if one.oauth is not None},
        adapters={one.name: one.adapter for one in all_providers if one.adapter is not None},
    )
    return brought, tuple(problems)


def _config(one: Provider) -> JsonObject:
    if one.adapter is None:
        return one.config
    return {"baseUrl": OWN_ADDRESS, "api": OWN_API, **one.config}


def _problem(one: Provider, what: str) -> LoadProblem:
    message = f"provider {one.name!r} of extension {one.extension!r}: {what}"
    return LoadProblem(message=message, level="error")
