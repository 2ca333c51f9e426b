"""Reports of failures beside a run: storage errors and failed hooks."""

import logging
from collections.abc import Callable

from agent_core.events import ErrorRaised, ExtensionError, Notice
from agent_core.hooks import HookFailure
from agent_core.kernel.errors import StorageError
from agent_core.kernel.values import Value
from agent_core.session.context import EventPublisher, failure_of

log = logging.getLogger(__name__)


class StorageStatusPublisher(Value, frozen=True):
    """Publisher of storage failures and recoveries."""

    publisher: EventPublisher

    def failed(self, error: StorageError, /) -> None:
        """Report that something is only in memory."""
        view = self.publisher.snapshot.run
        _ = self.publisher.publish(
            ErrorRaised(run=view.run if view else None, error=failure_of(error))
        )

    def works_again(self, entries: int, /) -> None:
        """Report that what waited is in the file."""
        text = f"saved again: the session's file holds all of the {entries} entries that had waited for the disk"
        _ = self.publisher.publish(Notice(level="info", text=text))


def report_to(publisher: EventPublisher) -> Callable[[HookFailure], None]:
    """Report that a hook failed; where exactly stands in the log."""

    def publish(failure: HookFailure) -> None:
        log.error("hook %r failed at %s", failure.owner, failure.point, exc_info=failure.exception)
        _ = publisher.publish(
            ExtensionError(
                extension=failure.owner,
                event=failure.point,
                error=failure.error,
                stack=failure.stack,
            )
        )

    return publish
