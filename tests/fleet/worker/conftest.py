"""One change on a fake forge, and a worker for it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.harness.isolation import TillerDirs
from tests.support.review.fleet_work import FleetWork, fleet_work


@pytest.fixture
async def work(tmp_path: Path, tiller_dirs: TillerDirs) -> AsyncGenerator[FleetWork]:
    """Return a change of one file with one wrong line."""
    async with fleet_work(tmp_path, tiller_dirs) as made:
        made.script()
        yield made
