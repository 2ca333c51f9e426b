"""Files behind SSH and in containers keep all promises of the port."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent_core.workspace.remote.files import RemoteFiles
from agent_core.workspace.remote.prefixes import ContainerPrefix, SshPrefix
from agent_core.workspace.remote.transport import Remote
from tests.support.remote.containers import INNER, Container
from tests.support.remote.ssh_server import ENV, HOST, SshServer
from tests.support.workspace.rooted_workspace import Mount
from tests.workspace.files.conformance import FilesConformance
from tests.workspace.files.subject import Mounted, OnDisk, Subject


class TestSshFiles(FilesConformance):
    """Behind SSH, on loopback."""

    @pytest.fixture
    async def subject(self, server: SshServer, folder: Path) -> AsyncGenerator[Subject]:
        root = folder / "workspace"
        root.mkdir()
        remote = Remote(SshPrefix(HOST, env=ENV, options=server.options), env=ENV)
        home = folder / "home"
        files = RemoteFiles(remote, (root,), home)
        yield Subject(files=files, root=root, home=home, contents=OnDisk())
        await remote.close()


def inside(box: Container, name: str) -> Subject:
    """Return an empty workspace in a container."""
    (box.shared / name / "workspace").mkdir(parents=True)
    remote = Remote(
        ContainerPrefix("podman", box.name, env=box.env, options=box.options), env=box.env
    )
    root = INNER / name / "workspace"
    home = INNER / name / "home"
    files = RemoteFiles(remote, (root,), home)
    return Subject(files=files, root=root, home=home, contents=Mounted(Mount(INNER, box.shared)))


class TestContainerFiles(FilesConformance):
    """In a container with coreutils."""

    @pytest.fixture
    def subject(self, machine_box: Container, tmp_path: Path) -> Subject:
        return inside(machine_box, tmp_path.name)


class TestBusyboxFiles(FilesConformance):
    """In a container with BusyBox alone."""

    @pytest.fixture
    def subject(self, busybox_box: Container, tmp_path: Path) -> Subject:
        return inside(busybox_box, tmp_path.name)
