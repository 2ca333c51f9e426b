"""What is told of the queue: every change with the number of its event, so that clients can edit what they saw."""

from agent_core.events import QueueChanged
from agent_core.session.parts import Parts


def tell_queue(parts: Parts) -> None:
    """Tell how the queue is now."""
    inbox = parts.inbox
    parts.voice.say(QueueChanged(queue=inbox.items(), paused=inbox.paused))
    inbox.changed_seq = parts.voice.feed.seq


def pause_queue(parts: Parts) -> None:
    """Let words that wait stay where they are until the next prompt, and say so."""
    inbox = parts.inbox
    if not inbox.is_empty() and not inbox.paused:
        inbox.paused = True
        tell_queue(parts)


def release_queue(parts: Parts) -> None:
    """Let words that wait be said again, and say so."""
    inbox = parts.inbox
    if not inbox.paused:
        return
    inbox.paused = False
    if inbox.items():
        tell_queue(parts)
