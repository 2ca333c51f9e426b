"""Gives the tests sessions with servers, and a provider on the loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.isolation import TillerDirs
from tests.support.mcp.mcp_office import McpOffice
from tests.support.provider import LoopbackProvider
from tests.support.session.folders import Folder


@pytest.fixture(scope="session")
def lab() -> Iterator[LoopbackProvider]:
    """Run one provider for all tests; each writes its own script."""
    with LoopbackProvider() as provider:
        yield provider


@pytest.fixture
def office(tmp_path: Path, tiller_dirs: TillerDirs, lab: LoopbackProvider) -> McpOffice:
    """Return a folder in which sessions with servers can be opened."""
    root = tmp_path / "work"
    root.mkdir()
    return McpOffice(Folder(root, tiller_dirs), lab)
