"""Registrations of an extension other than hooks, tools and commands."""

from collections.abc import Callable
from typing import TypeVar

from agent_core.extensions.actions import SessionActions
from agent_core.extensions.registry.registrations import (
    Draw,
    Flag,
    FlagKind,
    FlagValue,
    Provider,
    Registrations,
    Renderer,
    Shortcut,
)
from agent_core.extensions.scope import ExtensionScope
from agent_core.kernel import JsonObject
from agent_core.providers.auth.oauth import OAuthFacts
from agent_core.providers.extension_models import ExtensionModelFactory

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
            oauth: How users log in, `PkceFacts` or `DeviceFacts`; None: with a key, or as before.
            adapter: Makes models that answer by themselves; None: those of the `api`.
        """
        self._scope.life.check()
        self._registered.providers[name] = Provider(
            name=name, extension=self.name, config=config, oauth=oauth, adapter=adapter
        )
        self._changed()
