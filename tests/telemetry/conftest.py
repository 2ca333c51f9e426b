"""Gives the tests a folder whose sessions are traced, a provider and a collector."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.isolation import TillerDirs
from tests.support.provider import LoopbackProvider
from tests.support.provider.collector import Collector
from tests.support.session.folders import Folder


@pytest.fixture(scope="session")
def lab() -> Iterator[LoopbackProvider]:
    """Run one provider for all tests; each writes its own script."""
    with LoopbackProvider() as provider:
        yield provider


@pytest.fixture
def folder(tmp_path: Path, tiller_dirs: TillerDirs) -> Folder:
    """Return a workspace without anything in it."""
    root = tmp_path / "work"
    root.mkdir()
    return Folder(root, tiller_dirs)


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Run a collector that takes everything."""
    with Collector() as running:
        yield running
