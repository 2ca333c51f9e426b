"""A migrated database for each test: SQLite, and PostgreSQL where it is installed."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tiller_server.fleet.store.database import FleetDatabase


@pytest.fixture
def database(tmp_path: Path) -> Generator[FleetDatabase]:
    """Create a database of the fleet."""
    made = FleetDatabase(f"sqlite:///{tmp_path}/fleet.db")
    made.migrate()
    yield made
    made.close()
