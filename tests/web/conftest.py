"""The ground of tests about the web front end: folders of their own, a provider, a workspace."""

from pathlib import Path

import pytest

from tests.daemon.conftest import ground
from tests.support.clients.certificates import write_certificate
from tiller_server.web.listen_address import ListenAddress, read_listen_address

__all__ = ["ground"]

PUBLIC_NAME = "tiller.test"
ANYWHERE = "0.0.0.0"  # noqa: S104 - with a certificate and a login


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of the public name and of this machine, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    return write_certificate(folder, PUBLIC_NAME, "127.0.0.1")


@pytest.fixture(params=["this machine", "others by HTTPS"])
def listen_address(request: pytest.FixtureRequest, certificate: tuple[Path, Path]) -> ListenAddress:
    """The ways in which a server is reached."""
    if request.param == "this machine":
        return ListenAddress(port=0)
    cert, key = certificate
    return read_listen_address(f"{ANYWHERE}:0", cert=cert, key=key)
