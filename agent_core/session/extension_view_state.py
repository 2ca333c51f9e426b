"""Standing views of extensions, stored for front ends that connect later."""

from typing import Final

from agent_core.events import Event, UiStatus, UiTitle, UiWidget

MOST_VIEWS: Final = 100
"""Of all extensions together; the oldest goes first."""
Standing = UiStatus | UiWidget | UiTitle


class StandingViews:
    """Follows the events and keeps what stands."""

    def __init__(self) -> None:
        self._standing: dict[tuple[type[Standing], str, str], Standing] = {}

    @property
    def all(self) -> tuple[Standing, ...]:
        """The standing views, in the order in which they came."""
        return tuple(self._standing.values())

    def see(self, event: Event) -> None:
        """Store or clear the view that an event carries; ignore other events."""
        if not isinstance(event, Standing):
            return
        place = type(event), event.extension, str(event.view.get("key", ""))
        _ = self._standing.pop(place, None)
        content = event.view.get("view" if isinstance(event, UiWidget) else "text")
        if not content:
            return
        self._standing[place] = event
        while len(self._standing) > MOST_VIEWS:
            del self._standing[next(iter(self._standing))]

    def taken_off(self, extension: str) -> tuple[Standing, ...]:
        """Return the events that take off all that one extension shows."""
        return tuple(_nothing(one) for one in self.all if one.extension == extension)


def _nothing(shown: Standing) -> Standing:
    view = {"view" if isinstance(shown, UiWidget) else "text": None}
    return type(shown)(extension=shown.extension, view={**shown.view, **view})
