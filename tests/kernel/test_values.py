"""Values are msgspec structs, and dataclasses for extensions that treat them as such."""

import dataclasses
import pickle
import subprocess
import sys
from typing import ClassVar

import pytest

from agent_core.kernel.values import SecretValue, Value
from tests.support.harness.shared import ROOT


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


RACE = """
import sys, threading
import msgspec
from agent_core.kernel.values import threadsafe

sys.setswitchinterval(1e-6)
module = sys.modules[__name__]


def made(number, inner):
    fields = [("a", int), *([] if inner is None else [("inner", f"{inner.__name__} | None", None)])]
    made = msgspec.defstruct(f"S{number}", fields, module=__name__)
    setattr(module, made.__name__, made)
    return made


for turn in range(20):
    kind, value = None, None
    for number in range(turn * 20, turn * 20 + 20):
        kind = made(number, kind)
        value = {"a": 1, **({} if value is None else {"inner": value})}
    start = threading.Barrier(8)

    def read(kind=kind, value=value):
        start.wait()
        msgspec.convert(value, threadsafe(kind))

    threads = [threading.Thread(target=read) for _ in range(8)]
    [one.start() for one in threads]
    [one.join() for one in threads]
print("read")
"""


def test_threads_that_read_a_type_for_the_first_time_do_no_harm() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", RACE], cwd=ROOT, capture_output=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, b"read\n"), ran.stderr.decode()
