"""The world that the tests of the policy stand in."""

from pathlib import Path

import pytest

from tests.workspace.permissions.policy.world import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


@pytest.fixture(scope="session")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One world for many examples; nothing in it is changed."""
    return make_world(tmp_path_factory.mktemp("policy"))
