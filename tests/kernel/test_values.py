"""Values are msgspec structs, and dataclasses for extensions that treat them as such."""

import dataclasses
import pickle
from typing import ClassVar

import pytest

from agent_core.kernel.values import SecretValue, Value


class Part(Value, frozen=True, kw_only=True):
    name: str
    tags: tuple[str, ...] = ()


class Whole(Part, frozen=True, kw_only=True):
    parts: tuple[Part, ...]
    notes: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it
    size: int = 1


class Key(SecretValue, frozen=True, kw_only=True):
    hidden: ClassVar = frozenset({"secret"})

    user: str
    secret: str


WHOLE = Whole(name="a", parts=(Part(name="b", tags=("c",)),))


def test_a_value_is_compared_hashed_and_copied_by_its_fields() -> None:
    assert Part(name="a") == Part(name="a") != Part(name="b")
    assert len({Part(name="a"), Part(name="a")}) == 1
    assert pickle.loads(pickle.dumps(WHOLE)) == WHOLE  # noqa: S301 - our own bytes


def test_a_value_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        WHOLE.size = 2  # pyright: ignore[reportAttributeAccessIssue] - the point


def test_the_functions_of_dataclasses_accept_a_value() -> None:
    assert dataclasses.is_dataclass(WHOLE)
    assert dataclasses.replace(WHOLE, size=2) == Whole(name="a", parts=WHOLE.parts, size=2)
    assert [(one.name, one.type) for one in dataclasses.fields(Part)] == [
        ("name", str),
        ("tags", tuple[str, ...]),
    ]
    assert dataclasses.asdict(WHOLE) == {
        "name": "a",
        "tags": (),
        "parts": ({"name": "b", "tags": ("c",)},),
        "notes": {},
        "size": 1,
    }


def test_each_class_has_its_own_fields_and_defaults() -> None:
    fields = {one.name: one for one in dataclasses.fields(Whole)}
    assert list(fields) == ["name", "tags", "parts", "notes", "size"]
    assert fields["name"].default is dataclasses.MISSING
    assert fields["size"].default == 1
    assert fields["notes"].default_factory is dict
    assert [one.name for one in dataclasses.fields(Part)] == ["name", "tags"]


def test_a_secret_is_not_shown() -> None:
    assert repr(Key(user="me", secret="s3cret")) == "Key(user='me')"
