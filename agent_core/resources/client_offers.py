"""Contributions of extensions to clients besides commands: keys to bind, flags to set, message renderers."""

from typing import Literal, Protocol

from agent_core.kernel import JsonObject
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage


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
