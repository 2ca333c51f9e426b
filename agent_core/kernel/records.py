"""The decorator `dataclass` of the standard library, which writes the methods of a class when they are first used.

Python needs half a millisecond to write and compile the methods of one dataclass. We have hundreds, a process uses some
dozens of them, and a command would pay for all before it says its first word. Here a class gets its constructor at its
first instance, and what is rarely asked for (comparing, showing, `fields`, `replace`) from the standard library when it
is. What is wrong with a class is found then.
"""

import dataclasses
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn, TypeVar, cast, get_origin

__all__ = ["dataclass"]

T = TypeVar("T")
Decorator = Callable[[type[T]], type[T]]

_PLAN: Final = "__fields_of_record__"
_INIT: Final = "__init__"
_HASH: Final = "__hash__"
_FIELDS: Final = "__dataclass_fields__"
_SETTING: Final = ("__setattr__", "__delattr__")
_LATER: Final = (_FIELDS, "__dataclass_params__", "__match_args__")
_LATER_FROZEN: Final = ("__getstate__", "__setstate__")
_UNKNOWN: Final = frozenset({_INIT, "__new__", "__slots__", *_SETTING, *_LATER})
"""Members of a class that only the standard library goes along with."""
_NO_FIELDS: Final = ("ClassVar", "InitVar", "KW_ONLY")
_KNOWN: Final = sys.version_info < (3, 14)
"""From 3.14 on a class's annotations are computed when they are asked for: to ask early would cost more."""


class _Later:
    """A member of a class that is written when it is asked for."""

    __slots__: ClassVar = ("_write",)

    def __init__(self, write: Callable[[], object]) -> None:
        self._write = write

    def __get__(self, instance: object, owner: type) -> object:
        written = self._write()
        bind = cast("_Binds | None", getattr(type(written), "__get__", None))
        return written if bind is None else bind(written, instance, owner)


_Binds = Callable[[object, object, type], object]


class _Field:
    """What a class says of a field."""

    __slots__: ClassVar = ("asked", "default", "factory", "keyword", "kind")

    def __init__(self, value: object, kind: object, *, keyword: bool) -> None:
        said = cast("dataclasses.Field[object] | None", _field_or_none(value))
        self.kind = kind
        self.default = value if said is None else cast("object", said.default)
        self.factory: object = MISSING if said is None else said.default_factory
        self.asked = said is None or said.init
        self.keyword = (
            said.kw_only if said is not None and said.kw_only in {True, False} else keyword
        )


def _field_or_none(value: object) -> object:
    return cast("object", value) if isinstance(value, dataclasses.Field) else None


def _decorator(
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    **more: bool,
) -> Decorator[T]:
    whole = cast(
        "Decorator[T]",
        dataclasses.dataclass(frozen=frozen, slots=slots, kw_only=kw_only, eq=eq, **more),
    )

    def decorated(cls: type[T]) -> type[T]:
        own = _own_fields(cls, keyword=kw_only) if slots and not more else None
        if own is None:
            return whole(cls)
        return _Record(cls, own, whole, frozen=frozen, eq=eq).made

    return decorated


def _own_fields(cls: type, *, keyword: bool) -> Mapping[str, _Field] | None:
    """Give a class's own fields; None where only the standard library knows what is to be done."""
    members = cls.__dict__
    if not _KNOWN or not _UNKNOWN.isdisjoint(members):
        return None
    if any(_FIELDS in base.__dict__ and _PLAN not in base.__dict__ for base in cls.__mro__):
        return None
    own: dict[str, _Field] = {}
    kinds = cast("Mapping[str, object]", members.get("__annotations__", {}))
    for name, kind in kinds.items():
        if isinstance(kind, str):
            if any(word in kind for word in _NO_FIELDS):
                return None
        elif kind is dataclasses.KW_ONLY or isinstance(kind, dataclasses.InitVar):
            return None
        elif kind is ClassVar or get_origin(kind) is ClassVar:
            continue
        value = cast("object", members.get(name, MISSING))
        own[name] = _Field(value, kind, keyword=keyword)
    return own


class _Record:
    """Makes a class with slots, and its methods when they are asked for."""

    _writing: ClassVar = RLock()
    """One for all: to write a class may write those that it is made of."""

    def __init__(
        self,
        cls: type,
        own: Mapping[str, _Field],
        whole: Callable[[type], type],
        *,
        frozen: bool,
        eq: bool,
    ) -> None:
        self._cls = cls
        self._whole = whole
        self._frozen = frozen
        self._given: Mapping[str, object] = dict(cls.__dict__)
        self._left_out = {*own, "__dict__", "__weakref__", "__slots__", _INIT, *_SETTING}
        self._plan: dict[str, _Field] = {}
        taken: set[str] = set()
        for base in reversed(cls.__mro__[1:-1]):
            self._plan |= cast("Mapping[str, _Field]", base.__dict__.get(_PLAN, {}))
            taken.update(cast("tuple[str, ...]", base.__dict__.get("__slots__", ())))
        self._plan |= own
        members = {name: one for name, one in self._given.items() if name not in self._left_out}
        members |= self._methods(eq=eq)
        members["__slots__"] = tuple(name for name in own if name not in taken)
        members[_PLAN] = self._plan
        self.made: type = type(cls)(cls.__name__, cls.__bases__, members)
        self.made.__qualname__ = cls.__qualname__

    def _methods(self, *, eq: bool) -> dict[str, object]:
        given = self._given
        asked = ["__repr__"]
        members: dict[str, object] = {_INIT: _Later(self._constructor)}
        if self._frozen:
            asked += _LATER_FROZEN
            members |= dict(zip(_SETTING, (_refuse_to_set, _refuse_to_delete), strict=True))
        if eq:
            asked.append("__eq__")
            if given.get(_HASH) is None:
                members[_HASH] = self._later(_HASH) if self._frozen else None
        names = (*_LATER, *(name for name in asked if name not in given))
        return members | {name: self._later(name) for name in names}

    def _constructor(self) -> object:
        with self._writing:
            if isinstance(self.made.__dict__[_INIT], _Later):
                written = _constructor(self.made, self._plan, frozen=self._frozen)
                setattr(self.made, _INIT, written)
        return cast("object", self.made.__dict__[_INIT])

    def _later(self, name: str) -> _Later:
        def write() -> object:
            with self._writing:
                if isinstance(self.made.__dict__[name], _Later):
                    self._write_rest()
            return cast("object", self.made.__dict__[name])

        return _Later(write)

    def _write_rest(self) -> None:
        whole = cast("Mapping[str, object]", self._whole(self._cls).__dict__)
        for name, one in whole.items():
            if name not in self._left_out and self._given.get(name) is not one:
                setattr(self.made, name, one)


def _constructor(made: type, plan: Mapping[str, _Field], *, frozen: bool) -> Callable[..., None]:
    """Write the constructor; of what is given only the names of fields become a part of it."""
    known: dict[str, object] = {"absent": MISSING}
    first, named, body = list[str](), list[str](), list[str]()
    for name, one in plan.items():
        asked, value = name, name
        if one.default is not MISSING:
            known[f"default_{name}"] = one.default
            asked = f"{name}=default_{name}"
            value = name if one.asked else f"default_{name}"
        elif one.factory is not MISSING:
            known[f"make_{name}"] = one.factory
            asked, value = f"{name}=absent", f"make_{name}()"
            if one.asked:
                value = f"{value} if {name} is absent else {name}"
        elif not one.asked:
            continue
        if one.asked:
            (named if one.keyword else first).append(asked)
        if frozen:
            known[f"set_{name}"] = _setter(made, name)
            body.append(f"set_{name}(self, {value})")
        else:
            body.append(f"self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(("self", *first, *(("*", *named) if named else ())))
    lines = "\n    ".join(body or ("pass",))
    exec(f"def __init__({parameters}):\n    {lines}\n", known)  # noqa: S102 - see above
    written = cast("Callable[..., None]", known[_INIT])
    written.__qualname__ = f"{made.__qualname__}.{_INIT}"
    written.__module__ = made.__module__
    kinds = {name: one.kind for name, one in plan.items() if one.asked}
    written.__annotations__ = {**kinds, "return": None}
    return written


def _setter(made: type, name: str) -> object:
    """Give what sets a slot, past the method that refuses to."""
    slot = cast("object", getattr(made, name))
    return cast("object", getattr(slot, "__set__"))  # noqa: B009 - a slot has one, which its type does not say


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    _ = self, value
    message = f"cannot assign to field {name!r}"
    raise dataclasses.FrozenInstanceError(message)


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    _ = self
    message = f"cannot delete field {name!r}"
    raise dataclasses.FrozenInstanceError(message)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(**asked: bool) -> Decorator[T]:
        """Decorate a class: with the arguments of the standard decorator, all of them by name."""
        return _decorator(**asked)
