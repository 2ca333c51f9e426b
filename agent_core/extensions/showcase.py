"""What extensions offer to clients besides commands, as the session asks for it."""

from collections.abc import Callable

from agent_core.extensions.commands import ExtensionCommands, Offering
from agent_core.extensions.registered import Flag, FlagValue
from agent_core.extensions.threads import call_either
from agent_core.extensions.views import ListView, TableView, TextView, view_json
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.records import dataclass
from agent_core.messages import CustomMessage
from agent_core.resources.offered import Offered, OfferedFlag, OfferedKey, OfferedRenderer


@dataclass(frozen=True, slots=True)
class Showcase:
    """Lists, presses and renders; an `OfferSource`."""

    _host: Offering
    _flags: Callable[[str], FlagValue | None]
    """Gives what the user set."""

    def offered(self) -> Offered:
        """Give what they offer now."""
        offers = self._host.offers
        return Offered(
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
        """Give a message as a view.

        Raises:
            ExtensionBroken: The renderer gave something that is no view.
            Exception: What it raises.
        """
        renderer = self._host.offers.renderers.get(message.custom_type)
        if renderer is None:
            return None
        view = await call_either(renderer.render, message)
        if view is None:
            return None
        if isinstance(view, str | TextView | ListView | TableView):
            return view_json(view)
        problem = (
            f"the renderer of {message.custom_type!r} of extension {renderer.extension!r} gave a {type(view).__name__}; "
            "it must give a view or words"
        )
        raise ExtensionBroken(problem)

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
