"""Fixtures of the other sides of remote workspaces, which the tests of a process share."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.harness.sizes import is_campaign
from tests.support.remote.containers import BUSYBOX, Container, container, entered
from tests.support.remote.ssh_server import NO_SSHD, SSHD, SshServer, ssh_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[SshServer]:
    """Run a server for the tests of a session; those that break connections break no others'."""
    if SSHD is None:
        pytest.skip(NO_SSHD)
    with ssh_server(tmp_path_factory.mktemp("sshd")) as made:
        yield made


@pytest.fixture(scope="session")
def machine_box(tmp_path_factory: pytest.TempPathFactory) -> Generator[Container]:
    """Run a container with the programs of this machine."""
    with container(tmp_path_factory.mktemp("box"), "machine") as made:
        yield made


@pytest.fixture(scope="session")
def entered_box(machine_box: Container, tmp_path_factory: pytest.TempPathFactory) -> Container:
    """Return the container with the programs of this machine; it is entered without the engine, except in a campaign."""
    return machine_box if is_campaign() else entered(machine_box, tmp_path_factory.mktemp("enter"))


@pytest.fixture(scope="session")
def busybox_box(tmp_path_factory: pytest.TempPathFactory) -> Generator[Container]:
    """Run a container that has nothing but BusyBox; it is entered without the engine, except in a campaign."""
    if BUSYBOX is None:
        pytest.skip("there is no busybox here: `make remote-setup` installs it")
    with container(tmp_path_factory.mktemp("box"), "busybox") as made:
        yield made if is_campaign() else entered(made, tmp_path_factory.mktemp("enter"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a real folder of this machine."""
    return tmp_path.resolve()
