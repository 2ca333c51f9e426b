"""Values made quickly are those that their constructors make."""

import dataclasses
import gc
import weakref
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent_core.kernel.quick import quick, uncollected
from agent_core.messages import AssistantMessage, Text, Usage
from agent_core.transcript import MessageEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    name: str
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Below(Base):
    size: int | None = None


class Circle:
    itself: "Circle | None" = None


@dataclass(frozen=True)
class Plain:
    name: str


@pytest.mark.parametrize(
    "given", [{"name": "a"}, {"name": "a", "size": 2}, {"name": "a", "tags": ["x"]}], ids=str
)
def test_a_value_is_as_its_constructor_makes_it(given: dict) -> None:
    made = quick(Below)(**given)
    assert made == Below(**given)
    assert type(made) is Below
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, "size", 3)  # noqa: B010 - a type checker would not let it pass


def test_what_is_made_anew_is_shared_by_nobody() -> None:
    make = quick(Below)
    assert make(name="a").tags is not make(name="b").tags


def test_what_is_needed_must_be_given() -> None:
    nothing: dict[str, Any] = {}
    other: dict[str, Any] = {"name": "a", "other": 1}
    with pytest.raises(TypeError, match="name"):
        _ = quick(Below)(**nothing)
    with pytest.raises(TypeError, match="other"):
        _ = quick(Below)(**other)


@pytest.mark.parametrize("cls", [Plain, int, len], ids=["no slots", "no dataclass", "no class"])
def test_other_classes_are_refused(cls: type) -> None:
    with pytest.raises(TypeError, match="no slotted dataclass"):
        quick(cls)


def test_no_value_of_ours_that_is_made_quickly_needs_more_than_its_fields() -> None:
    for cls in (Text, Usage, AssistantMessage, MessageEntry):
        assert not hasattr(cls, "__post_init__")


def test_the_search_for_garbage_goes_on_and_finds_what_was_made_meanwhile() -> None:
    with uncollected():
        assert not gc.isenabled()
        circle = Circle()
        circle.itself = circle
        left = weakref.ref(circle)
        del circle
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert left() is None


def test_a_search_that_was_off_stays_off() -> None:
    with uncollected():
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
