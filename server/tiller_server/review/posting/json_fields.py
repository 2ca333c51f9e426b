"""Reads fields of an answer, which may be anything."""

from collections.abc import Iterator, Mapping
from typing import Final

from agent_core.kernel.json import JsonObject, JsonValue

NOTHING: Final[JsonObject] = {}


def inside(value: JsonValue, *names: str) -> JsonObject:
    """Return the object under a path of names; an empty one when there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else NOTHING


def each(value: JsonValue) -> Iterator[JsonObject]:
    """Return the objects of a list; nothing when it is no list."""
    if isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, Mapping))


def text(value: JsonValue) -> str:
    """Return a text, or a number as one; empty when it is neither."""
    if isinstance(value, bool):
        return ""
    return str(value) if isinstance(value, str | int) else ""
