"""Gives every test the same ground: backend, guard against blocking calls, an environment of its own."""

import logging
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

from tests.support.harness import fork_server, hangs, loops
from tests.support.harness.isolation import COVERAGE_VARIABLE, TillerDirs, foreign_names, isolated
from tests.support.harness.seed_ids import guard_for
from tests.support.harness.shared import shared_path
from tests.support.harness.sizes import is_campaign, is_complete
from tests.support.provider import LoopbackProvider
from tests.support.session.folders import Folder

# A busy machine is slow without being wrong, so no example has a deadline.
for _name, _examples in (("quick", 20), ("ci", 50), ("campaign", 2000)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the Makefile passes."""
    loops.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the size and the loop, and let the controlling process watch over the listed tests."""
    is_worker = hasattr(config, "workerinput")
    size = "quick" if loops.of(config) == "quick" else "ci"
    settings.load_profile("campaign" if is_campaign() else size)
    if not is_campaign():
        fork_server.install()
    loops.register(config, is_worker=is_worker)
    hangs.register(config, is_worker=is_worker)
    if not is_worker:
        config.pluginmanager.register(guard_for(config, may_skip=not is_complete()), "seed-ids")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Skip a test whose fixtures start git where there is none."""
    with _skips_without_git():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip a test that starts git where there is none."""
    with _skips_without_git():
        return (yield)


@contextmanager
def _skips_without_git() -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if error.filename == "git" and shutil.which("git") is None and not is_complete():
            pytest.skip("git is not installed")
        raise


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on the loop that the server runs on."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _nothing_blocks() -> Iterator[None]:
    """Fail a call from agent_core that would block the event loop's thread."""
    with blockbuster_ctx("agent_core") as watch:
        # The first call of a function is noted under a lock by whoever measures coverage, in our frame.
        _ = watch.functions["threading.Lock.acquire"].can_block_in(
            "coverage/collector.py", "lock_data"
        )
        # An import waits where another thread imports the same module, as reading the module's file is waited for.
        for waiting in ("_find_and_load", "_lock_unlock_module"):
            _ = watch.functions["threading.Lock.acquire"].can_block_in(
                "<frozen importlib._bootstrap>", waiting
            )
        yield


@pytest.fixture(scope="session", autouse=True)
def _templates(pytestconfig: pytest.Config) -> None:
    """Let the processes that commands are forked from import while the first tests run."""
    if (
        fork_server.is_installed()
        and hasattr(pytestconfig, "workerinput")
        and loops.of(pytestconfig) != "quick"
    ):
        env = dict(os.environ)  # noqa: TID251 - handed on, not read
        for locale in ({}, {"LANG": "C.UTF-8"}):
            fork_server.prepare({**env, **locale})


@pytest.fixture(autouse=True)
def _start_of_commands(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fork our own commands from a template that has imported them, except where the start itself is the point."""
    before = fork_server.use(request.node.get_closest_marker("starts") is None)
    yield
    fork_server.use(before)


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Give pytest's own log handlers back as they were: a server in this process takes its secrets out of them."""
    handlers = logging.getLogger().handlers
    formatters = [(handler, handler.formatter) for handler in handlers]
    yield
    for handler, formatter in formatters:
        handler.setFormatter(formatter)


@pytest.fixture(scope="session")
def _short_base() -> Iterator[Path]:
    # pytest's own temporary folders are too deep for the path of a unix socket.
    base = Path(tempfile.mkdtemp(prefix="tl-"))
    yield base
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return count(1)


@pytest.fixture(autouse=True)
def _own_environment(
    monkeypatch: pytest.MonkeyPatch, _short_base: Path, _numbers: Iterator[int]
) -> TillerDirs:
    """Hide the developer's keys and settings from the test and from every process it starts."""
    dirs = TillerDirs.below(_short_base / str(next(_numbers)))
    for name in foreign_names(os.environ):  # noqa: TID251 - this is what keeps it from the tests
        monkeypatch.delenv(name)
    for name, value in dirs.variables().items():
        monkeypatch.setenv(name, value)
    return dirs


@pytest.fixture
def tiller_dirs(_own_environment: TillerDirs) -> TillerDirs:
    """Return the test's own configuration, data, runtime and home folders, made."""
    _own_environment.make()
    return _own_environment


@pytest.fixture
def child_env(_own_environment: TillerDirs) -> dict[str, str]:
    """Return the environment for a process that the test starts."""
    return isolated(os.environ, dirs=_own_environment)  # noqa: TID251 - handed on, not read


@pytest.fixture(scope="session")
def _coverage_of_children() -> str | None:
    return os.environ.get(COVERAGE_VARIABLE)  # noqa: TID251 - read before a test hides it


@pytest.fixture
def covered_env(_coverage_of_children: str | None, child_env: dict[str, str]) -> dict[str, str]:
    """Return `child_env` for a process whose lines count. Not for tests that measure time."""
    if _coverage_of_children is None:
        return child_env
    return child_env | {COVERAGE_VARIABLE: _coverage_of_children}


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of reference data; skips without it."""
    return shared_path()


@pytest.fixture
def folder(tmp_path: Path, tiller_dirs: TillerDirs) -> Folder:
    """Return a workspace without anything in it."""
    root = tmp_path / "work"
    root.mkdir()
    return Folder(root, tiller_dirs)


@pytest.fixture(scope="session")
def lab() -> Iterator[LoopbackProvider]:
    """Run one provider for all tests that ask for it; each writes its own script."""
    with LoopbackProvider() as provider:
        yield provider
