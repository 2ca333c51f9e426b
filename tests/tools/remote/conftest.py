"""The bench of the built-in tools, in workspaces behind SSH and in a container."""

import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Final
from zlib import crc32

import pytest
from msgspec.structs import replace

from agent_core.tools.builtin import builtin_tools
from agent_core.workspace.remote.prefixes import ContainerPrefix, SshPrefix
from agent_core.workspace.remote.workspace import opened_workspace
from tests.support.harness.sizes import is_campaign
from tests.support.remote.containers import Container
from tests.support.remote.fixtures import entered_box, folder, machine_box, server
from tests.support.remote.ssh_server import ENV, HOST, SshServer
from tests.tools.conftest import Bench

__all__ = ["entered_box", "folder", "machine_box", "server"]


KINDS: Final = ("ssh", "container")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Try each test in both workspaces in a campaign, and else in one of them in turn."""
    if "bench" in metafunc.fixturenames:
        turn = crc32(metafunc.function.__name__.encode()) % len(KINDS)
        kinds = KINDS if is_campaign() else KINDS[turn : turn + 1]
        metafunc.parametrize("bench", kinds, indirect=True)


@pytest.fixture
async def bench(request: pytest.FixtureRequest, folder: Path) -> AsyncGenerator[Bench]:
    """Make a bench whose tools work on the other side; its folder has the same name here and there."""
    env: Mapping[str, str]
    if request.param == "ssh":
        server: SshServer = request.getfixturevalue("server")
        prefix, base, env = SshPrefix(HOST, env=ENV, options=server.options), folder, ENV
    else:
        box: Container = request.getfixturevalue("entered_box")
        prefix = ContainerPrefix("podman", box.name, env=box.env, options=box.options)
        base, env = box.shared / folder.name, box.env
    root = base / "ws"
    root.mkdir(parents=True)
    async with opened_workspace(prefix, str(root), env=env, address="test:") as opened:
        workspace = opened
        if request.param == "ssh":
            # With ripgrep there, and without it in the container.
            path = f"{Path(sys.executable).parent}:{workspace.env['PATH']}"
            workspace = replace(workspace, env={**workspace.env, "PATH": path})
        tools = {tool.spec.name: tool for tool in builtin_tools()}
        yield Bench(root=root, workspace=workspace, tools=tools)
