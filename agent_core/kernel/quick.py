"""Makes many values fast, for places where whole files are read."""

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

_ABSENT = object()


def quick(cls: Callable[P, T]) -> Callable[P, T]:
    """Give a function that does what the constructor of a frozen, slotted, keyword-only dataclass does.

    Such a constructor sets each field by its name through `object.__setattr__`. Here the fields of a twin with the
    same slots, which is not frozen, are set, and then it becomes what it is to be: that takes a quarter of the time.
    `__post_init__` is not called.

    Raises:
        TypeError: The class is none of that kind.
    """
    if not (isinstance(cls, type) and is_dataclass(cls) and hasattr(cls, "__slots__")):
        message = f"{cls!r} is no slotted dataclass"
        raise TypeError(message)
    known: dict[str, object] = {
        "cls": cls,
        "twin": _twin(cls),
        "absent": _ABSENT,
    }
    for one in fields(cls):
        known[f"make_{one.name}"] = one.default_factory
        known[f"default_{one.name}"] = (
            _ABSENT if one.default is MISSING else cast("object", one.default)
        )
    parameters = ", ".join(_parameter(one) for one in fields(cls))
    settings = "".join(f"    made.{one.name} = {_value(one)}\n" for one in fields(cls))
    source = (
        f"def make(*, {parameters}):\n    made = twin()\n{settings}"
        "    made.__class__ = cls\n    return made\n"
    )
    exec(source, known)  # noqa: S102 - as dataclasses makes its constructors: from the names of fields alone
    return cast("Callable[P, T]", known["make"])


@contextmanager
def uncollected() -> Generator[None]:
    """Put off the search for circles of garbage, in the whole process, while many values are made that all stay.

    It would walk over them again and again: up to a fifth of the time. Several threads may do this at once; the
    search goes on when the first of those that found it on is done. What was made then counts as old: it is walked
    over when all is, not at once.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                # Frozen and unfrozen, all that there is belongs to the oldest generation.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _twin(cls: type) -> type:
    """Make a class with the same layout whose fields can be set."""
    own = {
        "__slots__": cls.__dict__["__slots__"],
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
        "__init__": object.__init__,
    }
    return type(f"_{cls.__name__}", cls.__bases__, own)


def _parameter(one: Field[object]) -> str:
    needed = one.default is MISSING and one.default_factory is MISSING
    return one.name if needed else f"{one.name}=default_{one.name}"


def _value(one: Field[object]) -> str:
    if one.default_factory is MISSING:
        return one.name
    return f"make_{one.name}() if {one.name} is absent else {one.name}"
