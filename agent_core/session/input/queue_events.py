"""Events of the queue: every change is published, with the number of its event, so that clients can edit the queue."""

from agent_core.events import Notice, QueueChanged
from agent_core.session.context import SessionContext
from agent_core.session.model_selection import why_no_images


def publish_queue(parts: SessionContext) -> None:
    """Publish the queue as it is now."""
    inbox = parts.inbox
    parts.publisher.publish(QueueChanged(queue=inbox.items(), paused=inbox.paused))
    inbox.changed_seq = parts.publisher.feed.seq


def pause_queue(parts: SessionContext) -> None:
    """Pause the queue until the next prompt, and publish that; an empty or paused queue stays as it is."""
    inbox = parts.inbox
    if not inbox.is_empty() and not inbox.paused:
        inbox.paused = True
        publish_queue(parts)


def release_queue(parts: SessionContext) -> None:
    """Resume a paused queue; publish that if messages of the user wait."""
    inbox = parts.inbox
    if not inbox.paused:
        return
    inbox.paused = False
    if inbox.items():
        publish_queue(parts)


def hold_images(parts: SessionContext) -> None:
    """Pause the queue and say so when images wait in it that the model in force is not sent."""
    held = len(parts.inbox.held_back())
    if not held:
        return
    why, remedy = why_no_images(parts.models)
    count = "1 queued message has" if held == 1 else f"{held} queued messages have"
    text = (
        f"{count} images, which are not sent to {parts.models.ref}: {why}. The queue is paused. "
        f"Remove the images, or {remedy}; then send the queue."
    )
    pause_queue(parts)
    _ = parts.publisher.publish(Notice(level="warning", text=text))
