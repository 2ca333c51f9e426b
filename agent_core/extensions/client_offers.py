"""Contributions of extensions to people and clients: commands and keys, flags, shortcuts and renderers."""

import asyncio
import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol

import anyio.to_thread
import msgspec

from agent_core.extensions.ports import call_either
from agent_core.extensions.registry import Flag, FlagValue, Offers, Renderer
from agent_core.extensions.scope import ExtensionScope
from agent_core.extensions.ui import ListView, TableView, TextView, view_json
from agent_core.hooks.calls import HookCall, OutOfTime, Threads, apart, within_limit
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage
from agent_core.resources.offers import (
    ClientOffers,
    Completion,
    OfferedFlag,
    OfferedKey,
    OfferedRenderer,
    SlashCommand,
)


class ExtensionHostPort(Protocol):
    """Host of the extensions of a session."""

    @property
    def offers(self) -> Offers:
        """Current contributions of the extensions."""
        ...

    def scope(self, extension: str) -> ExtensionScope:
        """Return what an extension stands on."""
        ...


class ExtensionCommands(Value, frozen=True):
    """Lists, completes and runs them; a `CommandSource`."""

    _host: ExtensionHostPort

    def commands(self) -> Sequence[SlashCommand]:
        """List them as they are now."""
        return [
            SlashCommand(
                name=name,
                description=one.description,
                source="extension",
                argument_hint=one.argument_hint,
            )
            for name, one in self._host.offers.commands.items()
        ]

    async def complete(self, name: str, prefix: str) -> Sequence[Completion]:
        """Return how the arguments of a command may go on; nothing for one that cannot say."""
        command = self._host.offers.commands.get(name)
        if command is None or command.complete is None:
            return ()
        complete = command.complete
        found = await anyio.to_thread.run_sync(lambda: complete(prefix), abandon_on_cancel=True)
        return [Completion(value=one) if isinstance(one, str) else one for one in found or ()]

    async def run(self, name: str, arguments: str) -> None:
        """Run a command to its end.

        Raises:
            ExtensionBroken: There is no command of that name any more.
            Exception: Any exception of the command.
        """
        from agent_core.extensions.context import CommandContext  # noqa: PLC0415 - at first use

        command = self._host.offers.commands.get(name)
        if command is None:
            message = f"there is no command /{name} any more"
            raise ExtensionBroken(message)
        context = CommandContext(self._host.scope(command.extension))
        with _noting_place(command.run):
            _ = await call_either(command.run, arguments, context)

    async def press(self, key: str) -> None:
        """Run the function of a keyboard shortcut.

        Raises:
            ExtensionBroken: No extension has registered the key.
            Exception: Any exception of the function.
        """
        from agent_core.extensions.context import CommandContext  # noqa: PLC0415 - at first use

        shortcut = self._host.offers.shortcuts.get(key.lower())
        if shortcut is None:
            message = f"no extension has the key {key!r}"
            raise ExtensionBroken(message)
        context = CommandContext(self._host.scope(shortcut.extension))
        with _noting_place(shortcut.run):
            _ = await call_either(shortcut.run, context)


@contextmanager
def _noting_place(function: object) -> Generator[None]:
    """Add the file and the line of an extension, as a note, to an error that its function raises."""
    try:
        yield
    except Exception as error:
        from agent_core.extensions.source_places import place_beside  # noqa: PLC0415 - few extensions fail

        if place := place_beside(error, function):
            error.add_note(place)
        raise


class ExtensionOffers(Value, frozen=True):
    """Lists, presses and renders; an `OfferSource`."""

    _host: ExtensionHostPort
    _flags: Callable[[str], FlagValue | None]
    """Returns the user's value."""
    _limit_s: float
    """How long a message may take to be shown."""
    _threads: Threads = msgspec.field(default_factory=Threads)

    def offered(self) -> ClientOffers:
        """Return what they offer now."""
        offers = self._host.offers
        return ClientOffers(
            keys=tuple(
                OfferedKey(key=one.key, extension=one.extension, description=one.description)
                for one in offers.shortcuts.values()
            ),
            flags=tuple(map(self._flag, offers.flags.values())),
            renderers=tuple(
                OfferedRenderer(custom_type=one.custom_type, extension=one.extension)
                for one in offers.renderers.values()
            ),
        )

    async def press(self, key: str) -> None:
        """Do what a key stands for, to its end."""
        await ExtensionCommands(self._host).press(key)

    async def rendered(self, message: CustomMessage) -> JsonObject | None:
        """Return a message rendered as a view; None: no renderer, or the renderer returned None.

        Raises:
            ExtensionBroken: The renderer returned something other than a view, or exceeded its time limit.
            Exception: Any exception of the renderer.
        """
        renderer = self._host.offers.renderers.get(message.custom_type)
        if renderer is None:
            return None
        view = await self._drawn(renderer, message)
        if view is None:
            return None
        if isinstance(view, str | TextView | ListView | TableView):
            return view_json(view)
        problem = (
            f"the renderer of {message.custom_type!r} of extension {renderer.extension!r} gave a {type(view).__name__}; "
            "it must give a view or words"
        )
        raise ExtensionBroken(problem)

    async def _drawn(self, renderer: Renderer, message: CustomMessage) -> object:
        """Run the renderer within the time limit, in a task of its own that it may cancel or break."""
        call = HookCall(renderer.extension, "message_renderer", self._limit_s)
        drawn: asyncio.Future[object] = asyncio.get_running_loop().create_future()

        async def steps() -> object:
            if inspect.iscoroutinefunction(renderer.render):
                return await renderer.render(message)  # pyright: ignore[reportAny] - code of others
            made = await self._threads.run(renderer.extension, partial(renderer.render, message))
            return await made if inspect.isawaitable(made) else made

        async def work() -> None:
            try:
                drawn.set_result(await within_limit(steps(), call))
            except OutOfTime as error:
                why = f"the renderer of {message.custom_type!r} of extension {renderer.extension!r}: {error}"
                drawn.set_exception(ExtensionBroken(why))
            except Exception as error:  # noqa: BLE001 - the fence around foreign code: raised to whoever asked
                drawn.set_exception(error)

        await apart(work(), stop=call.give_up)
        return drawn.result()

    def _flag(self, one: Flag) -> OfferedFlag:
        given = self._flags(one.name)
        fits = isinstance(given, bool if one.kind == "boolean" else str)
        return OfferedFlag(
            name=one.name,
            extension=one.extension,
            description=one.description,
            kind=one.kind,
            value=given if fits else one.default,
        )
