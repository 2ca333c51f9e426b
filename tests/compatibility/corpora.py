"""The recorded versions."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.compatibility.record import CORPUS


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, which compare as versions do."""
    return tuple(int(part) for part in version.split("."))


VERSIONS: Final = sorted(
    (one for one in CORPUS.iterdir() if one.is_dir()), key=lambda one: numbers(one.name)
)
EACH: Final = pytest.mark.parametrize("recorded", VERSIONS, ids=lambda one: one.name)
"""Runs a test with the folder of each recorded version."""


def read(recorded: Path, name: str) -> Any:
    """Return the value of a recorded JSON file."""
    return json.loads((recorded / f"{name}.json").read_text("utf-8"))
