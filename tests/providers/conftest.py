"""Connections that are closed when the test is over."""

import faulthandler
from collections.abc import AsyncIterator, Callable

import pytest

from agent_core.providers.catalog.catalogue import builtin_providers
from agent_core.providers.http.client import HttpPool
from tests.providers.replay import pool

Pools = Callable[..., HttpPool]


@pytest.fixture
def may_take_long() -> None:
    """Let a test run for minutes by plan: its own timeout watches over it, and nothing is dumped before that."""
    faulthandler.cancel_dump_traceback_later()


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


@pytest.fixture(autouse=True, scope="session")
def known_providers() -> None:
    """Read the catalogue once, as opening a session does in a thread: registries are made on the event loop."""
    _ = builtin_providers()
