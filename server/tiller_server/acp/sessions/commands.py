"""Commands that a client offers after a slash: those of extensions, templates and skills, and `/compact`. Pure."""

from collections.abc import Sequence
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object

COMPACT: Final = "compact"
COMPACT_COMMAND: Final[JsonObject] = {
    "name": COMPACT,
    "description": "Summarise the older part of the conversation",
    "input": {"hint": "what to keep"},
}


def available_commands(listed: JsonValue) -> list[JsonValue]:
    """Return the commands of a session, from the result of `agent/command/list`."""
    rows = as_object(listed).get("commands")
    commands = [_command(row) for row in (rows if isinstance(rows, list) else []) if is_object(row)]
    return [COMPACT_COMMAND, *(one for one in commands if one["name"] != COMPACT)]


def compact_instructions(content: Sequence[JsonValue]) -> str | None:
    """Return the text after `/compact`; None: the content of a prompt is something else."""
    if len(content) != 1:
        return None
    name, _, rest = as_text(as_object(content[0]).get("text")).strip().partition(" ")
    return rest.strip() if name == f"/{COMPACT}" else None


def _command(row: JsonObject) -> JsonObject:
    name, hint = as_text(row.get("name")), as_text(row.get("argumentHint"))
    more: JsonObject = {"input": {"hint": hint}} if hint else {}
    return {"name": name, "description": as_text(row.get("description")) or name, **more}
