"""Gives tests of the whole code time to read it: whichever comes first in a process parses every file."""

from pathlib import Path

import pytest

from tests.support.harness import sources

READ_ALL_S = 90
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests alone that say themselves how long they may take."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(READ_ALL_S))


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Keep what was parsed for as long as these tests run."""
    if nextitem is None or HERE not in nextitem.path.parents:
        sources.forget()
