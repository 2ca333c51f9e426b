"""Connections that are closed when the test is over."""

from collections.abc import AsyncIterator, Callable

import pytest

from agent_core.providers.http import HttpPool
from tests.providers.replay import pool

Pools = Callable[..., HttpPool]


@pytest.fixture
async def pools() -> AsyncIterator[Pools]:
    """Make pools, with limits when given."""
    made: list[HttpPool] = []

    def make(**limits: float) -> HttpPool:
        made.append(pool(**limits))
        return made[-1]

    yield make
    for each in made:
        await each.aclose()
