"""Gives the tests sessions with servers."""

import pytest

from tests.support.mcp.mcp_office import McpOffice
from tests.support.provider import LoopbackProvider
from tests.support.session.folders import Folder


@pytest.fixture
def office(folder: Folder, lab: LoopbackProvider) -> McpOffice:
    """Return a folder in which sessions with servers can be opened."""
    return McpOffice(folder, lab)
