"""Values whose class is also their form in session files: how they are written, read, and repaired when read."""

from collections.abc import Callable, Mapping, Set as AbstractSet
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import msgspec

from agent_core.kernel import JsonObject as AnyObject, JsonValue as AnyJson
from agent_core.kernel.values import Value, threadsafe

# msgspec does not resolve the recursive alias; these fields hold the result of a JSON parser.
if TYPE_CHECKING:
    JsonValue: TypeAlias = AnyJson
    JsonObject: TypeAlias = AnyObject
else:
    JsonValue: TypeAlias = object
    JsonObject: TypeAlias = dict

__all__ = [
    "NOTHING",
    "FieldRepair",
    "JsonObject",
    "JsonValue",
    "StoredValue",
    "always",
    "chosen",
    "repaired",
    "split",
    "to_json",
]

T = TypeVar("T")
StoredT = TypeVar("StoredT", bound=msgspec.Struct)

NOTHING: "JsonObject" = MappingProxyType({})
_EXTRA_FIELDS = frozenset({"extra", "line_extra"})
"""Fields of a class that hold the JSON that it does not show; no names of a line."""

FieldRepair = Callable[["JsonValue"], tuple[object, bool]]
"""Returns the part of a field that fits its type, and whether that is all of it; a missing field is None."""


class StoredValue(Value, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A value that session files hold: tag, order and names of its fields are those of its JSON.

    A field that has its default is left out, except with `always`.
    """


def always(default: T) -> T:
    """Return the default of a field that is written even if it has its default."""
    # Only a plain default is left out; pyright reads the type of the field from the result.
    return msgspec.field(default_factory=lambda: default)


def to_json(value: msgspec.Struct) -> "dict[str, JsonValue]":
    """Return the JSON object of a value; tuples stay tuples."""
    return cast("dict[str, JsonValue]", msgspec.to_builtins(value, enc_hook=_plain))


def repaired(
    raw: "JsonObject", kind: type[StoredT], repairs: Mapping[str, FieldRepair]
) -> tuple[StoredT, frozenset[str]]:
    """Read an object that may have unknown fields and fields of wrong types.

    Returns:
        The value, and the names of the fields that it does not show whole.

    Raises:
        ValueError: A field without a repair is missing or does not fit.
    """
    tag, names = _names(kind)
    fields: dict[str, object] = dict(tag)
    odd = {key for key in raw if key not in names and key not in tag}
    for name in names:
        repair = repairs.get(name)
        if repair is not None:
            fields[name], is_whole = repair(raw.get(name))
            if not is_whole:
                odd.add(name)
        elif name in raw:
            fields[name] = raw[name]
    try:
        return msgspec.convert(fields, threadsafe(kind)), frozenset(odd)
    except msgspec.ValidationError as error:
        message = f"a field of a {kind.__name__} does not fit: {error}"
        raise ValueError(message) from error


def split(raw: "JsonObject", kind: type[msgspec.Struct]) -> "tuple[JsonObject, JsonObject]":
    """Return the fields of an object that a class has, and those that it does not have."""
    tag, names = _names(kind)
    unknown = raw.keys() - names
    unknown -= tag.keys()
    if not unknown:
        return raw, NOTHING
    return chosen(raw, raw.keys() - unknown), chosen(raw, unknown)


def chosen(raw: "JsonObject", names: AbstractSet[str]) -> "JsonObject":
    """Return those of the named fields that an object has, in its order."""
    return {key: raw[key] for key in raw if key in names} or NOTHING


@cache
def _names(kind: type[msgspec.Struct]) -> tuple[Mapping[str, object], frozenset[str]]:
    config = kind.__struct_config__
    tag = {} if config.tag_field is None else {config.tag_field: config.tag}
    return tag, frozenset(kind.__struct_encode_fields__) - _EXTRA_FIELDS


def _plain(value: object) -> object:
    """Make a dict of a mapping of another kind."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise NotImplementedError  # as msgspec expects of a hook for another type
