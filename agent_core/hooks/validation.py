"""Validation of a hook's answer against its hook point: the types of third-party code are not checked before."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from types import UnionType
from typing import cast, get_args, get_origin

from agent_core.hooks.catalogue import Point
from agent_core.kernel import JsonObject, JsonValue

DEEPEST = 200
"""JSON that is nested deeper than this is refused."""


def fault(outcome: object, point: Point) -> str | None:
    """Return what is wrong with an answer; None: it is sound."""
    if not isinstance(outcome, point.outcomes):
        return f"gave {outcome!r:.200}, which is no outcome of {point.name}"
    for field in fields(outcome):
        value: object = getattr(outcome, field.name)  # pyright: ignore[reportAny] - foreign
        if not _fits(value, field.type):
            what = f"{type(outcome).__name__}({field.name}={value!r:.200})"
            return f"gave {what}, and {field.name} must be {_said(field.type)}"
    return None


def _fits(value: object, kind: object) -> bool:
    if kind in (JsonValue, JsonObject):
        return _is_json(value, DEEPEST) and (kind == JsonValue or isinstance(value, Mapping))
    if isinstance(kind, type) or kind is None:
        return value is None if kind is None else isinstance(value, kind)
    inner: tuple[object, ...] = get_args(kind)
    match get_origin(kind):
        case origin if origin is UnionType:
            return any(_fits(value, one) for one in inner)
        case origin if origin is tuple:
            return _is_a(value, tuple) and all(_fits(one, inner[0]) for one in _items(value))
        case origin if origin is Mapping:
            return _is_a(value, Mapping) and all(
                _fits(key, inner[0]) and _fits(one, inner[1]) for key, one in _pairs(value)
            )
        case _:
            return callable(value)


def _is_json(value: object, depth: int) -> bool:
    if value is None or isinstance(value, str | int | float):
        return True
    if depth == 0:
        return False
    if _is_a(value, Mapping):
        return all(isinstance(key, str) and _is_json(one, depth - 1) for key, one in _pairs(value))
    return _is_a(value, list, tuple) and all(_is_json(one, depth - 1) for one in _items(value))


def _is_a(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds)


def _items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value)  # foreign: of what it is made is what is being found out


def _pairs(value: object) -> Iterable[tuple[object, object]]:
    return cast("Mapping[object, object]", value).items()  # the same


def _said(kind: object) -> str:
    if kind in (JsonValue, JsonObject):
        return "a JSON object" if kind == JsonObject else "JSON"
    if isinstance(kind, type) and not get_args(kind):
        return kind.__name__
    return str(kind).replace("agent_core.messages.values.", "").replace("collections.abc.", "")
