"""The ground of every wire shape: one model class, vendor words, ids and bounded numbers."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, ClassVar, NewType, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    SkipValidation,
    StringConstraints,
)
from pydantic_core import PydanticCustomError

from agent_core.kernel.values import Value

__all__ = [
    "CLEARABLE",
    "Clearable",
    "FailFastList",
    "Marker",
    "NonNegativeNumber",
    "SafeCount",
    "Seq",
    "SessionParams",
    "Timestamp",
    "Token",
    "Uint",
    "UncheckedJson",
    "UncheckedJsonObject",
    "Vendor",
    "VendorWord",
    "WireModel",
    "at_most",
    "dump",
    "tagged_union",
    "wire_name",
]

# What the transport has parsed is JSON: walking it again would cost seconds for a hostile value.
UncheckedJson = Annotated[JsonValue, SkipValidation]
UncheckedJsonObject: TypeAlias = dict[str, UncheckedJson]

Element = TypeVar("Element")
# Without it a small message of a million wrong entries costs seconds and a gigabyte of error reports.
FailFastList = Annotated[list[Element], Field(fail_fast=True)]
"""A list, judged up to its first wrong entry."""

VendorWord = NewType("VendorWord", str)
"""A word this version does not know; it begins with `_`, means something to its vendor and is passed on."""

Vendor = Annotated[VendorWord, StringConstraints(pattern="^_")]

MAX_SAFE_INTEGER = 2**53 - 1
MAX_UINTEGER = 2**31 - 1

Seq = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
SafeCount = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
Uint = Annotated[int, Field(ge=0, le=MAX_UINTEGER)]
"""LSP's `uinteger`."""
NonNegativeNumber = Annotated[float, Field(ge=0)]
"""A quantity that may have a fraction: money, minutes, percent."""
Timestamp = Annotated[
    str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")
]
"""A time as RFC 3339."""
Token = int | str
"""A progress token, minted by the client."""


class Clearable(Value, frozen=True):
    """Marks an optional field in which an explicit null means «clear», not «left out»."""


CLEARABLE = Clearable()


@cache
def wire_name(name: str) -> str:
    """Return how a field is called on the wire: camelCase, without the underscore that keeps off keywords."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in rest)


class WireModel(BaseModel):
    """A shape of the wire: camelCase outside, immutable, unknown fields left out, nothing coerced."""

    # Schemas are built on first use: a process that never prompts never pays for the prompt's models.
    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=wire_name,
        populate_by_name=True,
        extra="ignore",
        strict=True,
        frozen=True,
        defer_build=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )


class Marker(WireModel):
    """Capability marker: its presence means that the capability is supported; fields in it are for later versions."""


class SessionParams(WireModel):
    """Parameters of a method that works on a session."""

    session: str | None = None
    """Session id. Left out: the session of this connection, which is opened on demand."""


def at_most(limit: int) -> BeforeValidator:
    """Refuse a list or object of more entries before any of them is looked at."""

    def judge(given: object) -> object:
        if isinstance(given, list | dict) and len(given) > limit:  # pyright: ignore[reportUnknownArgumentType] - foreign JSON
            raise PydanticCustomError("shape", "have at most {limit} entries", {"limit": limit})
        return given  # pyright: ignore[reportUnknownVariableType] - foreign JSON

    return BeforeValidator(judge)


def tagged_union(key: str, *tags: str, vendor: bool = False) -> Discriminator:
    """Create a discriminator that selects the member of a union by one of its fields.

    Args:
        key: The field on the wire.
        tags: Its known values, each the tag of a member.
        vendor: Whether words that begin with `_` belong to a member tagged `_`.
    """
    allowed = frozenset(tags)

    def tag(value: object) -> str | None:
        given: object = _member(value, key)
        if not isinstance(given, str):
            return None
        if given in allowed:
            return given
        return "_" if vendor and given.startswith("_") else None

    return Discriminator(
        tag,
        custom_error_type="unknown_word",
        custom_error_message=f"{key} must be one of " + ", ".join(f'"{word}"' for word in tags),
    )


def _member(value: object, key: str) -> object:
    if isinstance(value, Mapping):
        return value.get(key)  # pyright: ignore[reportUnknownMemberType] - foreign JSON
    return getattr(value, key, None)


def dump(model: WireModel) -> UncheckedJsonObject:
    """Write a shape as the JSON object that goes on the wire.

    A field that may be left out is left out when it is None, unless it is `CLEARABLE` and was set to None on
    purpose; a field that must be there is written also when it is null. Fields of vendors are kept.
    """
    fields = type(model).model_fields
    written: UncheckedJsonObject = {}
    for name, field in fields.items():
        value: object = getattr(model, name)
        if value is None and not field.is_required():
            cleared = name in model.model_fields_set and CLEARABLE in field.metadata
            if not cleared:
                continue
        written[wire_name(name)] = _plain(value)
    written.update(model.model_extra or {})
    return written


def _plain(value: object) -> JsonValue:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case WireModel():
            return dump(value)
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - keys are made strings
        case Sequence():
            return [_plain(each) for each in value]
        case _:
            message = f"{value!r} is no JSON value; a wire shape may hold only JSON"
            raise TypeError(message)
