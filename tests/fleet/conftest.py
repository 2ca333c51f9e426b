"""A migrated database for each test: SQLite, and PostgreSQL where it is installed."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.programs.postgres import MISSING, PostgresCluster, new_folder, programs, remove
from tiller_server.fleet.store.database import FleetDatabase


@pytest.fixture(scope="session")
def postgres() -> Generator[PostgresCluster]:
    """Start a cluster that does not wait for the disk."""
    if programs() is None:
        pytest.skip(MISSING)
    made = PostgresCluster.make(new_folder(), is_durable=False)
    yield made
    remove(made)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    """Create an empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/fleet.db"
        return
    cluster: PostgresCluster = request.getfixturevalue("postgres")
    name = cluster.make_database()
    yield cluster.url(name)
    cluster.drop_database(name)


@pytest.fixture
def database(database_url: str) -> Generator[FleetDatabase]:
    """Create the tables of the fleet."""
    made = FleetDatabase(database_url)
    made.migrate()
    yield made
    made.close()
