"""The decorator that writes methods late makes the classes that the one of the standard library makes."""

import copy
import dataclasses
import inspect
import pickle
import pkgutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, FrozenInstanceError, InitVar, field, fields, replace
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from typing_extensions import override

import agent_core
import tiller_server
from agent_core.kernel.records import dataclass

T = TypeVar("T")
PLAN = "__fields_of_record__"
"""Only a class whose methods are written late has it."""


def _kinds() -> list[dict[str, bool]]:
    return [
        {"slots": slots, "frozen": frozen, "kw_only": kw_only, "eq": eq}
        for slots in (True, False)
        for frozen in (True, False)
        for kw_only in (True, False)
        for eq in (True, False)
    ]


def _made(decorator: Any) -> dict[str, type]:
    """Give classes of each sort that is written here, decorated."""
    made = (*_plain(decorator), *_special(decorator))
    return {one.__name__: one for one in made}


def _plain(decorator: Any) -> tuple[type, ...]:

    @decorator
    class Simple:
        """A name and more."""

        name: str  # pyright: ignore[reportUninitializedInstanceVariable] - the decorator does
        size: int = 3
        tags: list[str] = field(default_factory=list)
        count: ClassVar[int] = 7

    @decorator
    class Below(Simple):
        """One more, and another default."""

        size: int = 4
        more: str = field(default="x", repr=False, compare=False)

    @decorator
    class Late:
        """Has fields that are not asked for."""

        name: str = ""
        seen: int = field(default=0, init=False)
        made: list[int] = field(default_factory=list, init=False)

        def told(self) -> str:
            return self.name

    return Simple, Below, Late


def _special(decorator: Any) -> tuple[type, ...]:
    @decorator
    class Own:  # noqa: PLW1641 - what becomes of its hash is asked here
        """Has methods of its own."""

        name: str = "a"

        @override
        def __eq__(self, other: object) -> bool:
            return other == "me"

        @override
        def __repr__(self) -> str:
            return "me"

    @decorator
    class Checked:
        """Looks at what it is given."""

        size: int = 0
        later: "Empty | None" = None

        def __post_init__(self) -> None:
            if self.size < 0:
                raise ValueError(self.size)

    @decorator
    class Empty:
        """Has nothing."""

    @decorator
    class Odd:
        """Has what is left to the standard library."""

        name: str  # pyright: ignore[reportUninitializedInstanceVariable] - the decorator does
        extra: InitVar[int] = 1
        _: KW_ONLY  # pyright: ignore[reportUninitializedInstanceVariable] - the decorator does
        last: int = 2

    @decorator
    class Of(Generic[T]):
        """Of something."""

        one: T | None = None

    return Own, Checked, Empty, Odd, Of


def _told(act: Callable[[], object]) -> object:
    """Give what comes out, in words that do not differ between two classes of one name."""
    try:
        got = act()
    except (TypeError, ValueError, AttributeError) as error:
        # Beside a field's name the standard library's own classes with slots only say that something is wrong.
        return "refused" if isinstance(error, AttributeError | TypeError) else repr(error)
    if isinstance(got, type):
        return got.__name__
    return got if isinstance(got, str | int | tuple | list | dict | bool) else repr(got)


def _answers(cls: Any, *given: Any, **named: Any) -> Iterator[object]:
    def one() -> Any:
        return cls(*given, **named)

    yield _told(one)
    yield _told(lambda: one() == one())
    yield _told(lambda: one() == "me")
    yield _told(lambda: hash(one()) == hash(one()))
    yield _told(lambda: setattr(one(), "name", "other"))
    yield _told(lambda: setattr(one(), "nothing", 1))
    yield _told(lambda: delattr(one(), "name"))
    yield _told(lambda: copy.copy(one()) == one())
    yield _told(lambda: repr(copy.deepcopy(one())))
    yield _told(lambda: repr(replace(one(), name="new")))
    yield _told(lambda: repr(dataclasses.asdict(one())))
    yield _told(lambda: [one.name for one in fields(cls)])
    yield _told(lambda: cls.__match_args__)
    yield _told(lambda: getattr(cls, "__slots__", None))
    yield _told(lambda: str(inspect.signature(cls)).replace("<factory>", "").split("=")[0])
    yield _told(lambda: sorted(inspect.signature(cls).parameters))
    yield _told(lambda: hasattr(one(), "__dict__"))
    yield _told(lambda: cls.__hash__ is None)
    yield _told(lambda: cls.__doc__)
    yield _told(lambda: cls.__qualname__)


GIVEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    (("a",), {}),
    ((), {"name": "a"}),
    ((), {"name": "a", "size": 9, "tags": ["x"]}),
    ((), {"size": -1}),
    ((), {"size": 5}),
    ((), {"name": "a", "last": 5}),
    ((), {"one": 5}),
    ((), {"unknown": 5}),
]


@pytest.mark.parametrize(
    "kind", _kinds(), ids=lambda kind: "-".join(k for k, v in kind.items() if v)
)
def test_a_class_does_what_the_standard_one_does(kind: dict[str, bool]) -> None:
    for given, named in GIVEN:
        # New classes each time: what is asked first is asked of a class that has no methods yet.
        ours, theirs = _made(dataclass(**kind)), _made(dataclasses.dataclass(**kind))
        assert (PLAN in ours["Below"].__dict__) is kind["slots"], "which of the two makes it"
        for name, cls in ours.items():
            told = list(_answers(cls, *given, **named))
            assert told == list(_answers(theirs[name], *given, **named)), (name, given, named)


@pytest.mark.parametrize("place", range(20))
def test_whatever_is_asked_first_is_there(place: int) -> None:
    for kind in _kinds():
        ours, theirs = _made(dataclass(**kind)), _made(dataclasses.dataclass(**kind))
        for name, cls in ours.items():
            asked = [list(_answers(one)) for one in (cls, theirs[name])]
            assert asked[0][place] == asked[1][place], (name, kind)


def test_a_frozen_value_refuses_with_the_error_of_frozen_values() -> None:
    value: Any = _made(dataclass(frozen=True, slots=True, kw_only=True))["Simple"](name="a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        value.name = "b"
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
        del value.name
    assert value.name == "a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Stands where it can be found by its name."""

    name: str
    tags: tuple[str, ...] = ()


def test_a_value_comes_back_out_of_a_pickle() -> None:
    value = Packed(name="a", tags=("b",))
    assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - it was made in the line itself


def test_a_class_below_that_is_no_dataclass_has_the_constructor_too() -> None:
    base: Any = _made(dataclass(frozen=True, slots=True, kw_only=True))["Simple"]

    class Below(base):
        def __init__(self, name: str) -> None:
            super().__init__(name=name, size=1)

    assert (Below("a").name, Below("a").size) == ("a", 1)
    assert repr(Below("a")).endswith("Below(name='a', size=1, tags=[])")


def test_threads_that_meet_at_the_first_value_all_get_one() -> None:
    for _ in range(50):
        cls: Any = _made(dataclass(frozen=True, slots=True, kw_only=True))["Below"]
        start, made = threading.Barrier(4), list[Any]()

        def make(cls: Any = cls, start: threading.Barrier = start, made: list[Any] = made) -> None:
            _ = start.wait()
            made.append((cls(name="a"), cls(name="a") == cls(name="a"), repr(cls(name="b"))))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert len(made) == 4
        assert all(one[1] for one in made)


def test_every_class_of_ours_is_right() -> None:
    """What is wrong with a class would be found at its first use, so each is used here."""
    found = set(_records())
    assert len(found) > 500
    for cls in found:
        asked = [one.name for one in fields(cls) if one.init]
        named = list(inspect.signature(cls).parameters)
        assert sorted(asked) == sorted(named), cls
        _ = cls.__hash__, repr(cls.__eq__), repr(cls.__repr__)


def _records() -> Iterator[Any]:
    for root in (agent_core, tiller_server):
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if module.name.startswith("tiller_server.cli.sample") or module.name.endswith(
                "__main__"
            ):
                continue
            for value in vars(import_module(module.name)).values():
                if isinstance(value, type) and PLAN in value.__dict__:
                    yield value
