"""JSON objects of the platform, read without trust in their shape; pure."""

from typing import cast

from agent_core.kernel.json import JsonObject, JsonValue, decode, is_object

_EMPTY: JsonObject = {}


def as_object(value: object) -> JsonObject:
    """Return a JSON value that is an object; an empty one for anything else."""
    json = cast("JsonValue", value)
    return json if is_object(json) else _EMPTY


def parse_object(text: bytes | str) -> JsonObject:
    """Return the object that a text holds; an empty one for anything else."""
    try:
        return as_object(decode(text))
    except (ValueError, RecursionError):
        return _EMPTY
