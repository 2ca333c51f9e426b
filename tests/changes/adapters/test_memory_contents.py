"""Contents in memory keep the promises of every place for contents."""

import pytest

from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from tests.changes.adapters.conformance import ContentsConformance


class TestMemoryContents(ContentsConformance):
    @pytest.fixture
    def contents(self) -> MemoryBlobStore:
        return MemoryBlobStore()
