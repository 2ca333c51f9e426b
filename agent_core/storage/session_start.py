"""When a session comes into being: with the first words that are said in it."""

from collections.abc import Sequence

from agent_core.messages import AssistantMessage, UserMessage
from agent_core.transcript.entries import AnyEntry, MessageEntry


def begins_session(entries: Sequence[AnyEntry]) -> bool:
    """Return whether something was said: until then a session is not worth keeping."""
    return any(
        isinstance(entry, MessageEntry)
        and isinstance(entry.message, UserMessage | AssistantMessage)
        for entry in entries
    )
