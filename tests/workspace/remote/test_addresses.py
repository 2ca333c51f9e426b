"""Addresses of remote workspaces are read strictly: no part of one is an option of a program."""

import pytest

from agent_core.kernel.errors import UsageError
from agent_core.workspace.remote.address import RemoteAddress, parse_address


@pytest.mark.parametrize(
    ("text", "kind", "host", "path"),
    [
        ("ssh:devbox:/srv/app", "ssh", "devbox", "/srv/app"),
        ("ssh:me@devbox:~/my app", "ssh", "me@devbox", "~/my app"),
        ("ssh:[::1]:/a:b", "ssh", "[::1]", "/a:b"),
        ("docker:web-1", "docker", "web-1", ""),
        ("docker:web-1:/app", "docker", "web-1", "/app"),
        ("podman:web.x:~", "podman", "web.x", "~"),
        ("devcontainer:/srv/my app", "devcontainer", "/srv/my app", ""),
        ("devcontainer:~/app", "devcontainer", "~/app", ""),
    ],
)
def test_an_address_has_three_parts(text: str, kind: str, host: str, path: str) -> None:
    address = parse_address(text)
    assert (address.kind, address.host, address.path) == (kind, host, path)
    assert isinstance(address, RemoteAddress)
    assert address.name == f"{kind}:{host}"


@pytest.mark.parametrize(
    "text",
    [
        "", "/srv", "ssh", "ssh:", "ssh:host", "ssh:host:", "ssh::/a", "ssh:-oProxyCommand=x:/a",
        "ssh:me@-x:/a", "ssh:a b:/a", "ssh:host:a", "ssh:host:~other", "ssh:host:/a\nb",
        "docker:", "docker:-x", "docker:a/b:/c", "docker:web:app", "rsync:host:/a",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"write ssh:HOST:/path|must begin with"):
        _ = parse_address(text)
