"""A workspace, a provider and a configuration for each test that starts the real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clients.server import Ground
from tests.support.harness.isolation import TillerDirs
from tests.support.programs.daemon_runs import serving_runs
from tests.support.provider import LoopbackProvider


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module in each of its `RUN_WAYS`: in the process of the command, and below the daemon."""
    ways: tuple[str, ...] = getattr(metafunc.module, "RUN_WAYS", ())
    if ways and "ground" in metafunc.fixturenames:
        metafunc.parametrize("ground", ways, indirect=True)


@pytest.fixture
def ground(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    tiller_dirs: TillerDirs,
    covered_env: dict[str, str],
) -> Iterator[Ground]:
    """Return a configured, empty workspace with a provider that has nothing to say yet."""
    root = tmp_path / "project"
    root.mkdir()
    with LoopbackProvider() as provider:
        given = Ground(dirs=tiller_dirs, env=covered_env, provider=provider, root=root.resolve())
        given.configure()
        if getattr(request, "param", "process") == "process":
            yield given
            return
        with serving_runs(given) as served:
            yield served
