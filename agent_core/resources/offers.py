"""Slash commands, and other contributions to clients."""

from collections.abc import Sequence
from typing import Literal, Protocol

from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage

CommandKind = Literal["extension", "prompt", "skill", "builtin"]


class SlashCommand(Value, frozen=True, kw_only=True):
    """One of them, as people choose it from a list."""

    name: str
    """Without the slash."""
    description: str = ""
    source: CommandKind
    argument_hint: str = ""


class Completion(Value, frozen=True, kw_only=True):
    """One way to go on with the arguments of a command."""

    value: str
    label: str = ""
    description: str = ""


class SlashInvocation(Value, frozen=True, kw_only=True):
    """Words that begin with a slash, taken apart."""

    name: str
    arguments: str
    """As they were written, without the blanks around them."""


class CommandSource(Protocol):
    """Brings commands that run code; in a session those of extensions, and those of Tiller itself."""

    def commands(self) -> Sequence[SlashCommand]:
        """List them as they are now; of two of one name the first is meant."""
        ...

    async def complete(self, name: str, prefix: str) -> Sequence[Completion]:
        """Return how the arguments of a command may go on; nothing when it has no say."""
        ...

    async def run(self, name: str, arguments: str) -> str | None:
        """Run one of them; return a notice for the user, None if there is none. It runs beside what goes on in the session, and is cancelled when that closes."""
        ...


def slashed(text: str) -> SlashInvocation | None:
    """Parse a text that begins with a slash and a name; None when it does not."""
    if not text.startswith("/"):
        return None
    name, *rest = text[1:].split(maxsplit=1)[:2] if text[1:2].strip() else ("",)
    if not name:
        return None
    return SlashInvocation(name=name, arguments=rest[0].strip() if rest else "")


class OfferedKey(Value, frozen=True, kw_only=True):
    """A key that a client may bind."""

    key: str
    """`ctrl+shift+t` for one."""
    extension: str
    description: str


class OfferedFlag(Value, frozen=True, kw_only=True):
    """A switch that the user sets in their settings."""

    name: str
    extension: str
    description: str
    kind: Literal["boolean", "string"]
    value: bool | str | None
    """Current value; the one that the user set, else the default."""


class OfferedRenderer(Value, frozen=True, kw_only=True):
    """A type of messages for which an extension gives a view."""

    custom_type: str
    extension: str


class ClientOffers(Value, frozen=True, kw_only=True):
    """All of it."""

    keys: tuple[OfferedKey, ...] = ()
    flags: tuple[OfferedFlag, ...] = ()
    renderers: tuple[OfferedRenderer, ...] = ()


class OfferSource(Protocol):
    """Holder of the extensions of a session."""

    def offered(self) -> ClientOffers:
        """Return what they offer now."""
        ...

    async def press(self, key: str) -> None:
        """Run the function of a key, and wait until it ends.

        Raises:
            Exception: The exception of the function.
        """
        ...

    async def rendered(self, message: CustomMessage) -> JsonObject | None:
        """Return a message as a view; None: it has no view of its own.

        Raises:
            Exception: The exception of the renderer.
        """
        ...


class NoOffers:
    """Nothing is offered."""

    def offered(self) -> ClientOffers:
        """Return nothing."""
        return ClientOffers()

    async def press(self, key: str) -> None:
        """Do nothing."""
        _ = key

    async def rendered(self, message: CustomMessage) -> JsonObject | None:
        """Know no view."""
        _ = message
        return None
