"""The commands and keys of extensions, called by people."""

from collections.abc import Sequence
from typing import Protocol

import anyio.to_thread

from agent_core.extensions.calls.threads import call_either
from agent_core.extensions.context import CommandContext
from agent_core.extensions.registry.offers import Offers
from agent_core.extensions.scope import ExtensionScope
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value
from agent_core.resources.slash_commands import Completion, SlashCommand


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
        command = self._host.offers.commands.get(name)
        if command is None:
            message = f"there is no command /{name} any more"
            raise ExtensionBroken(message)
        _ = await call_either(
            command.run, arguments, CommandContext(self._host.scope(command.extension))
        )

    async def press(self, key: str) -> None:
        """Run the function of a keyboard shortcut.

        Raises:
            ExtensionBroken: No extension has registered the key.
            Exception: Any exception of the function.
        """
        shortcut = self._host.offers.shortcuts.get(key.lower())
        if shortcut is None:
            message = f"no extension has the key {key!r}"
            raise ExtensionBroken(message)
        _ = await call_either(shortcut.run, CommandContext(self._host.scope(shortcut.extension)))
