"""The bases of immutable values: msgspec structs that work with `dataclasses.replace`, `fields` and `asdict`."""

from collections.abc import Callable, Mapping
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar, cast

import msgspec
from typing_extensions import override

if TYPE_CHECKING:
    from dataclasses import Field


T = TypeVar("T")


class _DataclassFields:
    """The fields of a struct as `dataclasses` describes them; made at the first use of a class."""

    def __get__(
        self, instance: object, owner: type[msgspec.Struct]
    ) -> "Mapping[str, Field[object]]":
        return _dataclass_fields(owner)


class Value(msgspec.Struct, frozen=True):
    """An immutable value.

    Extensions are handed values, and use the functions of `dataclasses` on them.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[object]]]
    else:
        __dataclass_fields__ = _DataclassFields()


def threadsafe(kind: type[T]) -> type[T]:
    """Return a type after msgspec has built its description, one thread at a time; pass every type to read through it.

    msgspec builds the description of a struct at its first use, and another thread that uses the struct meanwhile ends
    the process with a segmentation fault.
    """
    _build(kind)
    return kind


@cache
def _build(kind: object) -> None:
    with _BUILDING:
        _ = msgspec.json.Decoder(kind)


_BUILDING: Final = Lock()


class SecretValue(Value, frozen=True):
    """An immutable value whose `repr` leaves out the fields in `hidden`, because they are secret or long."""

    hidden: ClassVar[frozenset[str]] = frozenset()

    @override
    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in self.hidden)
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({fields})"


@cache
def _dataclass_fields(owner: type[msgspec.Struct]) -> "Mapping[str, Field[object]]":
    from dataclasses import make_dataclass  # noqa: PLC0415 - they take long to load
    from inspect import get_annotations  # noqa: PLC0415

    types: dict[str, object] = {}
    for base in reversed(owner.__mro__):
        types |= cast("Mapping[str, object]", get_annotations(base))
    names = owner.__struct_fields__
    defaults = owner.__struct_defaults__
    values = (*[msgspec.NODEFAULT] * (len(names) - len(defaults)), *defaults)
    made = make_dataclass(
        owner.__name__,
        [(name, types[name], _field(value)) for name, value in zip(names, values, strict=True)],
        kw_only=True,
    )
    return cast("Mapping[str, Field[object]]", made.__dataclass_fields__)


def _field(default: object) -> "Field[object]":
    from dataclasses import MISSING, field  # noqa: PLC0415 - as above

    factory = cast("Callable[[], object] | None", getattr(default, "factory", None))
    if type(default).__module__ == "msgspec._core" and factory is not None:
        return cast("Field[object]", field(default_factory=factory))
    if type(default).__hash__ is None:
        # A dataclass refuses it as mutable; msgspec accepts what it knows to be immutable.
        return cast("Field[object]", field(default_factory=lambda: default))
    return cast(
        "Field[object]", field(default=MISSING if default is msgspec.NODEFAULT else default)
    )
