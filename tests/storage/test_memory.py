"""The store in memory keeps the promises of every store."""

import pytest

from agent_core.storage.adapters.memory import MemoryStore
from tests.storage.conformance import StoreConformance


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
