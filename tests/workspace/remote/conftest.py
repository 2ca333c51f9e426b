"""Other sides for the tests of this folder."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_core.workspace import Workspace
from agent_core.workspace.remote.prefixes import SshPrefix
from agent_core.workspace.remote.workspace import opened_workspace
from tests.support.remote.fixtures import busybox_box, folder, machine_box, server
from tests.support.remote.ssh_server import ENV, HOST, NO_SSHD, SSHD, SshServer, ssh_server

__all__ = ["busybox_box", "folder", "machine_box", "server"]


@pytest.fixture
def own_server(folder: Path) -> Generator[SshServer]:
    """Run a server that a test may break."""
    if SSHD is None:
        pytest.skip(NO_SSHD)
    (folder / "sshd").mkdir()
    with ssh_server(folder / "sshd") as made:
        yield made


@asynccontextmanager
async def behind(
    server: SshServer, folder: Path, *, silence_s: float = 60.0
) -> AsyncGenerator[tuple[Workspace, SshPrefix]]:
    """Open a workspace behind a server."""
    root = folder / "ws"
    root.mkdir(exist_ok=True)
    prefix = SshPrefix(HOST, env=ENV, options=server.options)
    async with opened_workspace(
        prefix, str(root), env=ENV, address="test:", silence_s=silence_s
    ) as workspace:
        yield workspace, prefix
