"""Compares answers by their shape, and follows the ids that two servers mint differently: pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agent_core.kernel import JsonValue

MOST_DEPTH: Final = 64
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def differences(recorded: JsonValue, now: JsonValue, *, place: str = "") -> Iterator[str]:
    """Return the differences in shape of an answer: members that are new or missing, values of another kind.

    The first element of a list stands for all of them. Values of one kind are not compared.
    """
    if place.count(".") > MOST_DEPTH:
        return
    before, after = _kind(recorded), _kind(now)
    if before != after:
        yield f"{place or 'the answer'}: was {before}, is {after}"
    elif isinstance(recorded, Mapping) and isinstance(now, Mapping):
        for name in sorted({*recorded, *now}):
            at = f"{place}.{name}" if place else name
            if name not in now:
                yield f"{at}: is missing"
            elif name not in recorded:
                yield f"{at}: is new"
            else:
                yield from differences(recorded[name], now[name], place=at)
    else:
        for one, other in list(zip(_list(recorded), _list(now), strict=False))[:1]:
            yield from differences(one, other, place=f"{place}[0]")


def learn(ids: dict[str, str], recorded: JsonValue, now: JsonValue) -> None:
    """Record which id of the recording corresponds to which id now: both are at the same place."""
    if isinstance(recorded, str) and isinstance(now, str):
        if _ID.fullmatch(recorded) and _ID.fullmatch(now):
            _ = ids.setdefault(recorded, now)
    elif isinstance(recorded, Mapping) and isinstance(now, Mapping):
        for name in recorded.keys() & now.keys():
            learn(ids, recorded[name], now[name])
    else:
        for one, other in zip(_list(recorded), _list(now), strict=False):
            learn(ids, one, other)


def translated(value: JsonValue, ids: Mapping[str, str]) -> JsonValue:
    """Return a value with the ids of now in the place of those of the recording."""
    if isinstance(value, str):
        return _ID.sub(lambda found: ids.get(found[0], found[0]), value)
    if isinstance(value, Mapping):
        return {name: translated(one, ids) for name, one in value.items()}
    if isinstance(value, Sequence):
        return [translated(one, ids) for one in value]
    return value


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case _:
            return "a list"
