"""Gives the tests a collector."""

from collections.abc import Iterator

import pytest

from tests.support.provider.collector import Collector


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Run a collector that takes everything."""
    with Collector() as running:
        yield running
