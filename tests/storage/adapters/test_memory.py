"""The store in memory keeps the promises of every store."""

import pytest

from agent_core.storage.adapters.memory import MemoryStore
from tests.storage.conformance import StoreConformance
from tests.storage.conformance_reading import ReadingConformance


class TestMemoryStore(StoreConformance, ReadingConformance):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore()
