"""The model's list of steps in a session: found in its entries, and added again after a compaction."""

from collections.abc import Sequence
from typing import Final

from agent_core.kernel import EntryId, JsonObject, JsonValue
from agent_core.messages import CustomMessage, Text, ToolResultMessage
from agent_core.tools.todo_list import NAME, open_items
from agent_core.transcript import AnyEntry, MessageEntry
from agent_core.transcript.entries import CustomMessageEntry

TYPE: Final = "tiller.todo"
HEADING: Final = "State of the todo list before the summary above. Tiller kept it; it is not a message of the user."


def todo_message(
    path: Sequence[AnyEntry], *, first_kept: EntryId, at_ms: int
) -> CustomMessage | None:
    """Return the message with the open items of a list that a summary replaces.

    Args:
        path: Entries of the branch before the compaction.
        first_kept: The entry from which on the conversation stays as it is.
        at_ms: Time of the message.

    Returns:
        None: there is no list, nothing of it is open, or it stays in the conversation.
    """
    is_kept = True
    for entry in reversed(path):
        details = _details(entry)
        if details is not None:
            items = () if is_kept else open_items(details)
            return _message(items, details, at_ms=at_ms) if items else None
        if entry.id == first_kept:
            is_kept = False
    return None


def _details(entry: AnyEntry) -> JsonValue:
    """Return the list that an entry has stored; None: it is another entry."""
    match entry:
        case MessageEntry(message=ToolResultMessage(tool_name=name, is_error=False) as result):
            return result.details if name == NAME else None
        case CustomMessageEntry(custom_type=kind, details=details) if kind == TYPE:
            return details
        case _:
            return None


def _message(items: Sequence[JsonObject], details: JsonValue, *, at_ms: int) -> CustomMessage:
    text = "\n".join((HEADING, *map(_line, items)))
    return CustomMessage(
        custom_type=TYPE,
        content=(Text(text=text),),
        display=False,
        details=details,
        at_ms=at_ms,
    )


def _line(item: JsonObject) -> str:
    why = f" (why: {item['why']})" if item.get("why") else ""
    return f"- [{item.get('status')}] {item.get('text')}{why}"
