"""The stored form of the list that the tool `todo` keeps: `{"todo": [{"id", "text", "status", "why"?}]}`."""

from collections.abc import Sequence
from typing import Final, Literal, get_args

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object

NAME: Final = "todo"
"""Name of the tool, and key of the list in the details of its results."""
TodoStatus = Literal["pending", "active", "done", "cancelled"]
STATUSES: Final[tuple[TodoStatus, ...]] = get_args(TodoStatus)
OPEN: Final = frozenset({"pending", "active"})


def open_items(details: JsonValue) -> Sequence[JsonObject]:
    """Return the items of a stored result that are not done and not cancelled."""
    items = as_object(details).get(NAME)
    listed = map(as_object, items) if isinstance(items, list) else ()
    return [one for one in listed if one.get("status") in OPEN]
