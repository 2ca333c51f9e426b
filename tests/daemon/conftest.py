"""The ground of tests about the daemon: folders of their own, a provider, a workspace."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clients.server import Ground
from tests.support.harness.isolation import TillerDirs
from tests.support.provider import LoopbackProvider


@pytest.fixture
def ground(
    tmp_path: Path, tiller_dirs: TillerDirs, covered_env: dict[str, str]
) -> Iterator[Ground]:
    """Return a configured, empty workspace with a provider that has nothing to say yet."""
    root = tmp_path / "project"
    root.mkdir()
    with LoopbackProvider() as provider:
        given = Ground(dirs=tiller_dirs, env=covered_env, provider=provider, root=root.resolve())
        given.configure()
        yield given
