"""Sessions of tests with external agents."""

import pytest

from tests.support.acp.agent_office import AgentOffice
from tests.support.provider import LoopbackProvider
from tests.support.session.folders import Folder


@pytest.fixture
def office(folder: Folder, lab: LoopbackProvider) -> AgentOffice:
    """Return a folder in which sessions with external agents can be opened."""
    return AgentOffice(folder, lab)
