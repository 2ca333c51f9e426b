"""The events of a session for those who keep them: where their numbers go on, and every one as it is told."""

from agent_core.events import Event
from agent_core.events.feed import EventObserver
from agent_core.kernel import EntryId
from agent_core.session.context import SessionContext


class EventsView:
    """View of a session's events for a recorder of events; readers use `subscribe`."""

    def __init__(self, parts: SessionContext) -> None:
        self._parts = parts

    @property
    def seq(self) -> int:
        """The number of the newest event; 0: nothing was told yet."""
        return self._parts.publisher.feed.seq

    @property
    def opened_after(self) -> EntryId | None:
        """The newest entry that the file held when the session was opened, before anything was repaired."""
        return self._parts.publisher.opened_after

    @property
    def newest_entry(self) -> EntryId | None:
        """The newest entry now."""
        return self._parts.recorder.transcript.newest

    def go_on_from(self, seq: int, tap: EventObserver) -> None:
        """Number events from `seq` on, and call a tap with each of them before any reader receives it.

        Events that were published before the first subscription are still sent to the first reader.
        """
        self._parts.publisher.feed.go_on_from(seq, tap)

    def publish(self, event: Event) -> None:
        """Publish an event that corrects an older one; the state that it reports is already in force."""
        self._parts.publisher.publish(event)
