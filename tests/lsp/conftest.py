"""A served workspace and pytest-lsp's own client, connected to the real server over stdio."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.protocol import default_converter
from pytest_lsp import ClientServerConfig, LanguageClient
from pytest_lsp.client import DEFAULT_CLIENT_FEATURES, register_lsp_features

from tests.support.clients.server import SERVER, Ground
from tests.support.harness.isolation import TillerDirs
from tests.support.provider import LoopbackProvider

WAIT_S = 10.0


class Frames:
    """Every progress value of a connection by its token, for tests to wait on."""

    def __init__(self) -> None:
        self.values: dict[object, list[dict[str, Any]]] = {}
        self._changed = asyncio.Event()

    def take(self, params: types.ProgressParams) -> None:
        """Take one notification."""
        self.values.setdefault(params.token, []).append(cast("dict[str, Any]", params.value))
        self._changed.set()

    async def until(self, wanted: Callable[[], object]) -> None:
        """Wait until this is so."""
        async with asyncio.timeout(WAIT_S):
            while not wanted():
                self._changed.clear()
                await self._changed.wait()


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


@pytest.fixture
def frames() -> Frames:
    """Return what the client notes progress in."""
    return Frames()


@pytest_asyncio.fixture
async def client(ground: Ground, frames: Frames) -> AsyncGenerator[LanguageClient, None]:
    """Return a client whose server has just been started; nothing has been said yet."""

    def note(params: types.ProgressParams) -> None:
        frames.take(params)

    def made() -> LanguageClient:
        one = LanguageClient(converter_factory=default_converter)
        # pytest-lsp knows work-done progress only; a subscription has frames of its own.
        register_lsp_features(one, {**DEFAULT_CLIENT_FEATURES, types.PROGRESS: note})
        return one

    config = ClientServerConfig(
        server_command=list(SERVER), client_factory=made, server_env=dict(ground.env)
    )
    started = await config.start()
    assert isinstance(started, LanguageClient)
    yield started
    server = started._server
    assert server is not None
    if (
        server.returncode is None
    ):  # the test failed before it said goodbye: nothing must wait for it
        server.kill()
    await started.stop()
