"""Fixtures of the standing red team."""

from collections.abc import Iterator

import pytest

from tests.security.red_team.attack import Attack
from tests.security.red_team.world import world


@pytest.fixture
def attack() -> Iterator[Attack]:
    with world() as machine, machine.session() as commands:
        yield Attack(machine, commands)
