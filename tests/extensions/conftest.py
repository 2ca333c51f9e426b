"""Gives the tests folders for extensions."""

from pathlib import Path

import pytest

from tests.support.harness.isolation import TillerDirs
from tests.support.hooks.extensions import Home


@pytest.fixture
def home(tmp_path: Path, tiller_dirs: TillerDirs) -> Home:
    """Return folders without anything in them."""
    root = tmp_path / "work"
    root.mkdir()
    return Home(tiller_dirs, root)
