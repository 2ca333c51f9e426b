"""A cluster of PostgreSQL that a test may crash."""

from collections.abc import Generator

import pytest

from tests.support.programs.postgres import MISSING, PostgresCluster, new_folder, programs, remove


@pytest.fixture(scope="module")
def durable_postgres() -> Generator[PostgresCluster]:
    """Start a cluster that waits for the disk, and that a test may crash."""
    if programs() is None:
        pytest.skip(MISSING)
    made = PostgresCluster.make(new_folder(), is_durable=True)
    yield made
    remove(made)
