"""Standing views of extensions, stored for front ends that connect later."""

from typing import Final

from agent_core.events import Event, UiStatus, UiTitle, UiWidget

MOST_VIEWS: Final = 100
"""Of all extensions together; the oldest goes first."""
PersistentView = UiStatus | UiWidget | UiTitle


class ExtensionViewState:
    """Follows the events and keeps what stands."""

    def __init__(self) -> None:
        self._views: dict[tuple[type[PersistentView], str, str], PersistentView] = {}

    @property
    def all(self) -> tuple[PersistentView, ...]:
        """The standing views, in the order in which they came."""
        return tuple(self._views.values())

    def apply(self, event: Event) -> None:
        """Store or clear the view that an event carries; ignore other events."""
        if not isinstance(event, PersistentView):
            return
        place = type(event), event.extension, str(event.view.get("key", ""))
        _ = self._views.pop(place, None)
        content = event.view.get("view" if isinstance(event, UiWidget) else "text")
        if not content:
            return
        self._views[place] = event
        while len(self._views) > MOST_VIEWS:
            del self._views[next(iter(self._views))]

    def taken_off(self, extension: str) -> tuple[PersistentView, ...]:
        """Return the events that take off all that one extension shows."""
        return tuple(_nothing(one) for one in self.all if one.extension == extension)


def _nothing(shown: PersistentView) -> PersistentView:
    view = {"view" if isinstance(shown, UiWidget) else "text": None}
    return type(shown)(extension=shown.extension, view={**shown.view, **view})
