"""Finds the keys of a JSON document that the pydantic model it was read into does not have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import cast

from pydantic import BaseModel

KeyPath = tuple[str | int, ...]
NOTES = ("_", "$", "//")
"""Prefixes of keys that are for people or for editors (`$schema`, `_comment`) and configure nothing."""
CLOSE = 0.7
"""How alike two names must be, 0 to 1; a swapped or missing letter is above it."""


def unknown_keys(
    model: BaseModel, document: Mapping[str, object]
) -> Iterator[tuple[KeyPath, Sequence[str]]]:
    """Return the path of each unknown key, with the keys that are known at its place.

    The model tells which member of a union was meant, so the document must be the one that it was read from.
    Values that no model describes are not looked at.

    Args:
        model: The model that the document was read into; keys are the aliases of its fields.
        document: JSON, as it was parsed.
    """
    return _of_model(model, document, ())


def did_you_mean(name: str, candidates: Iterable[str], *, above: str = "") -> str:
    """Return `; did you mean "x"?` for the known name that is most like one, or nothing.

    Args:
        name: The one that is not known.
        candidates: Those that are.
        above: Put before the name that is meant, such as `permission.`.
    """
    near = nearest(name, candidates)
    return "" if near is None else f'; did you mean "{above}{near}"?'


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the known name that is most like one; None: none is like it."""
    by_lower = {one.lower(): one for one in candidates}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=CLOSE)
    return by_lower[near[0]] if near else None


def _of_model(
    model: BaseModel, document: Mapping[str, object], above: KeyPath
) -> Iterator[tuple[KeyPath, Sequence[str]]]:
    fields = {field.alias or name: name for name, field in type(model).model_fields.items()}
    for key, value in document.items():
        if key in fields:
            read = cast("object", getattr(model, fields[key]))
            yield from _of_value(read, value, (*above, key))
        else:
            yield (*above, key), tuple(fields)


def _of_value(
    value: object, document: object, above: KeyPath
) -> Iterator[tuple[KeyPath, Sequence[str]]]:
    # One level: no model here holds lists of lists, and plain JSON can be nested without end.
    match value:
        case BaseModel():
            pairs: Iterable[tuple[KeyPath, object, object]] = ((above, value, document),)
        case Mapping() if isinstance(document, Mapping):
            inner = cast("Mapping[str, object]", document)
            values = cast("Mapping[str, object]", value)
            pairs = (((*above, key), one, inner.get(key)) for key, one in values.items())
        case list() | tuple():
            many = cast("Sequence[object]", document if isinstance(document, list) else [document])
            ones = zip(cast("Sequence[object]", value), many, strict=False)
            pairs = (((*above, index), one, raw) for index, (one, raw) in enumerate(ones))
        case _:
            return
    for path, one, raw in pairs:
        if isinstance(one, BaseModel) and isinstance(raw, Mapping):
            yield from _of_model(one, cast("Mapping[str, object]", raw), path)
